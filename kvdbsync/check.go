package kvdbsync

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
)

// check lists the store from time to time, beside the running watch, and ends
// the watch when it has lost a change: a new watch then puts everything right.
//
// A key is lost when the listing has it otherwise than the mirror and the watch
// has not named it since the listing began, nor within the grace time after.
// The watch is allowed to be late: then it names the key within the grace time.
// The listing is allowed to be old: then the watch has named the key since. Only
// a change that the watch never delivers is left. Where the store is merely
// slower than the grace time the verdict is wrong and costs one listing, but it
// cannot do harm: nothing of the listing that led to it goes into the mirror.
func (s *Source) check(ctx context.Context, stop context.CancelCauseFunc) {
	for s.awaitCheck(ctx) {
		l, lost, err := s.compare(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.o.Log.Warn("anti-entropy listing failed", "source", s.o.Name, "err", err)
		case len(lost) > 0:
			stop(fmt.Errorf("%w: %d keys, such as %s", ErrDrifted, len(lost), lost[0]))
			return
		default:
			s.confirm(l)
		}
	}
}

// awaitCheck waits until a check is due or asked for; false: ctx ended.
func (s *Source) awaitCheck(ctx context.Context) bool {
	var due <-chan time.Time
	if period := s.o.AntiEntropy; period > 0 {
		timer := time.NewTimer(period*3/4 + rand.N(period/2+1)) //nolint:gosec // spreads load; keeps no secret
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
		return true
	case <-s.relist.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// compare lists the store and returns the keys that the watch has lost.
func (s *Source) compare(ctx context.Context) (about Listing, lost []string, err error) {
	s.locked(s.mirror.watchTouches)
	defer s.locked(s.mirror.forgetTouches)
	l, err := s.list(ctx)
	if err != nil {
		return Listing{}, nil, err
	}
	listed := l.states()
	if lost = s.differing(listed); len(lost) == 0 {
		return l.about, nil, nil
	}
	if !backoff.Sleep(ctx, s.o.Grace) {
		return Listing{}, nil, ctx.Err()
	}
	return l.about, s.differing(listed), nil
}

func (s *Source) differing(listed map[string]state) (keys []string) {
	s.locked(func() { keys = s.mirror.differing(listed) })
	return keys
}

func (s *Source) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}
