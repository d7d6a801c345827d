// Package flaps lets descriptors pause before they repair something that flaps, and that no value shows, such as the mark of an
// owner. The scheduler itself does so for values. A [Flaps] decides how long something waits that somebody else
// changes again and again, before it is put back; it has no clock:
//
//	pause, begun := c.Lost("link 3", time.Now())
package flaps

import "github.com/keyplane/keyplane/scheduler/internal/retry"

// Flaps are the things that were changed recently. The zero value is empty. One goroutine owns it.
type Flaps = retry.Flaps
