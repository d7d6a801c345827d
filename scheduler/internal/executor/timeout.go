package executor

import (
	"context"
	"time"
)

// A sharedTimeout makes contexts for successive verbs. Verbs share a context while at least
// half of the timeout is left, because a context per verb would cost more than a fast verb.
type sharedTimeout struct {
	parent  context.Context
	minimum time.Duration
	current context.Context
	begun   time.Time
	cancel  context.CancelFunc
}

// contextAt returns the context of a verb that begins now.
func (s *sharedTimeout) contextAt(now time.Time) context.Context {
	if s.current == nil || now.Sub(s.begun) > s.minimum {
		s.end()
		s.begun = now
		s.current, s.cancel = context.WithTimeout(s.parent, 2*s.minimum)
	}
	return s.current
}

func (s *sharedTimeout) end() { s.cancel() }
