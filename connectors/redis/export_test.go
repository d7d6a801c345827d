package redis

import (
	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/kvdbsync"
)

var FromNode = fromNode

// Read returns the fields of a reading.
func Read(r reading) (events []kvdbsync.Event, left []string) { return r.events, r.left }

// AsksReplicas reports whether a session of a Cluster may ask replicas.
func AsksReplicas(s kvdbsync.Session) bool {
	o := s.(*session).client.(*goredis.ClusterClient).Options()
	return o.ReadOnly || o.RouteByLatency
}
