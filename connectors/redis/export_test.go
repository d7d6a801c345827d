package redis

import "github.com/keyplane/keyplane/kvdbsync"

var FromNode = fromNode

// Read returns the fields of a reading.
func Read(r reading) (events []kvdbsync.Event, left []string) { return r.events, r.left }
