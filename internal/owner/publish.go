package owner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Publishing returns a Publisher with sessions that end when another agent has the label: the keys of
// the label are that one's then.
func (k *Keeper) Publishing(into kvdbsync.Publisher) kvdbsync.Publisher { return publisher{k, into} }

// A publisher begins sessions while the label is not another's.
type publisher struct {
	keeper *Keeper
	into   kvdbsync.Publisher
}

// Session implements kvdbsync.Publisher. The error wraps ErrTaken if another agent has the label.
func (p publisher) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	if err := p.keeper.settled(ctx); err != nil {
		return nil, err
	}
	inner, err := p.into.Session(ctx, ttl)
	if err != nil {
		return nil, err
	}
	s := &session{Session: inner, keeper: p.keeper, lost: make(chan struct{}), closed: make(chan struct{})}
	s.watching.Go(s.watch)
	return s, nil
}

// A session is lost when that of the store is, or when another agent has the label.
type session struct {
	kvdbsync.Session
	keeper   *Keeper
	lost     chan struct{}
	closed   chan struct{}
	end      sync.Once
	watching sync.WaitGroup
}

// watch closes lost, unless the session is closed before.
func (s *session) watch() {
	for {
		now := s.keeper.now.Load()
		if errors.Is(now.reason(), ErrTaken) {
			close(s.lost)
			return
		}
		select {
		case <-now.ended:
		case <-s.Session.Lost():
			close(s.lost)
			return
		case <-s.closed:
			return
		}
	}
}

// Apply implements kvdbsync.Session. A process that was paused writes nothing before it knows whose the label is.
func (s *session) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	switch why := s.keeper.settled(ctx); {
	case errors.Is(why, ErrTaken):
		return errors.Join(kvdbsync.ErrSessionOver, why)
	case why != nil:
		return why
	}
	return s.Session.Apply(ctx, changes)
}

// Lost implements kvdbsync.Session.
func (s *session) Lost() <-chan struct{} { return s.lost }

// Close implements kvdbsync.Session.
func (s *session) Close(ctx context.Context) error {
	s.end.Do(func() { close(s.closed) })
	s.watching.Wait()
	return s.Session.Close(ctx)
}
