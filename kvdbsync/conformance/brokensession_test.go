package conformance_test

import (
	"context"
	"errors"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// A brokenPublisher begins sessions that have gone wrong.
type brokenPublisher struct {
	*conformance.Memory
	breaks func(*conformance.Memory, *brokenSession)
}

func (p brokenPublisher) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	s, err := p.Memory.Session(ctx, ttl)
	if err != nil {
		return nil, err
	}
	broken := &brokenSession{Session: s}
	p.breaks(p.Memory, broken)
	return broken, nil
}

// A brokenSession is a whole one whose nil functions do what they should.
type brokenSession struct {
	kvdbsync.Session
	apply func(ctx context.Context, changes []kvdbsync.Pair) error
	lost  <-chan struct{}
	close func(ctx context.Context) error
}

func (s *brokenSession) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	if s.apply != nil {
		return s.apply(ctx, changes)
	}
	return s.Session.Apply(ctx, changes)
}

func (s *brokenSession) Lost() <-chan struct{} {
	if s.lost != nil {
		return s.lost
	}
	return s.Session.Lost()
}

func (s *brokenSession) Close(ctx context.Context) error {
	if s.close != nil {
		return s.close(ctx)
	}
	return s.Session.Close(ctx)
}

func publishing(breaks func(*conformance.Memory, *brokenSession)) func(*conformance.Harness) {
	return func(h *conformance.Harness) { h.Publisher = brokenPublisher{h.Publisher.(*conformance.Memory), breaks} }
}

func sessionFaults() []fault {
	never := make(chan struct{})
	return []fault{
		{"keeps its keys", "the_keys_of_a_closed_session_vanish", publishing(func(_ *conformance.Memory, s *brokenSession) {
			s.close = func(context.Context) error { return nil }
		})},
		{"writes without a session", "the_keys_of_a_dead_holder_vanish", publishing(func(m *conformance.Memory, s *brokenSession) {
			s.apply = m.Apply
		})},
		{"forgets to delete", "a_session_writes,_lists_and_deletes", publishing(func(_ *conformance.Memory, s *brokenSession) {
			s.apply = func(ctx context.Context, changes []kvdbsync.Pair) error {
				for _, c := range changes {
					if c.Value == nil {
						continue
					}
					if err := s.Session.Apply(ctx, []kvdbsync.Pair{c}); err != nil {
						return err
					}
				}
				return nil
			}
		})},
		{"does not know that it is lost", "a_session_that_the_store_ends_is_lost", publishing(func(_ *conformance.Memory, s *brokenSession) {
			s.lost = never
		})},
		{"does not know that it cannot renew", "the_keys_of_a_dead_holder_vanish", publishing(func(_ *conformance.Memory, s *brokenSession) {
			s.lost = never
		})},
		{"wants a time", "a_session_may_have_the_store's_own_time", func(h *conformance.Harness) {
			h.Publisher = impatient{h.Publisher}
		}},
		{"takes what others wrote", "a_key_belongs_to_the_session_that_wrote_it_last", publishing(func(m *conformance.Memory, s *brokenSession) {
			s.close = func(ctx context.Context) error {
				pairs, err := m.List(ctx, "/")
				for i := range pairs {
					pairs[i].Value = nil
				}
				m.Txn(events(pairs)...)
				return err
			}
		})},
		{"does not renew", "a_session_lives_as_long_as_it_is_held", publishing(func(m *conformance.Memory, s *brokenSession) {
			time.AfterFunc(60*time.Millisecond, m.Revoke)
		})},
		{"gives up at once", "a_short_loss_of_the_store_does_a_session_no_harm", func(h *conformance.Harness) {
			m := h.Publisher.(*conformance.Memory)
			h.Sever = func() func() { m.Revoke(); return func() {} }
		}},
		{"leaves its renewing behind", "a_session_leaves_nothing_running", publishing(func(*conformance.Memory, *brokenSession) {
			go func() { select {} }()
		})},
	}
}

func events(pairs []kvdbsync.Pair) (out []kvdbsync.Event) {
	for _, p := range pairs {
		out = append(out, kvdbsync.Event{Key: p.Key, Value: p.Value})
	}
	return out
}

// An impatient publisher has no time of its own.
type impatient struct{ kvdbsync.Publisher }

func (p impatient) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	if ttl == 0 {
		return nil, errors.New("no time")
	}
	return p.Publisher.Session(ctx, ttl)
}
