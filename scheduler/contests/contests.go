// Package contests lets descriptors damp a contest about something that no value shows, such as the mark of an
// owner. The scheduler itself does so for values. A [Contests] decides how long something waits that somebody else
// changes again and again, before it is put back; it has no clock:
//
//	pause, begun := c.Lost("link 3", time.Now())
package contests

import "github.com/keyplane/keyplane/scheduler/internal/contest"

// Contests are the things that were changed recently. The zero value is empty. One goroutine owns it.
type Contests = contest.Contests
