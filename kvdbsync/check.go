package kvdbsync

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
)

// check lists the store periodically, beside the running watch. It ends the watch if the
// watch has lost a change. The next watch begins with a listing, which repairs the mirror.
//
// A key is lost if the listing differs from the mirror, and the watch has not named the
// key since the listing began, nor within the grace time after it. So a watch may be late,
// and a listing may be old. If the store is slower than the grace time, the verdict is
// wrong and costs one listing. It does no harm, because the mirror takes nothing from the
// listing of a check.
//
// Clients can request listings (Relist). After each one there is a pause as long as the
// listing took, so that requests keep the store busy for at most half of the time.
func (s *Source) check(ctx context.Context, stop context.CancelCauseFunc) {
	s.lookBeside(ctx)
	var pause time.Duration
	for s.awaitCheck(ctx) && backoff.Sleep(ctx, pause) {
		began := time.Now()
		l, lost, err := s.compare(ctx)
		pause = time.Since(began)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errRoom):
			stop(err)
			return
		case err != nil:
			s.o.Log.Warn("anti-entropy listing failed", "source", s.o.Name, "err", short(err))
		case len(lost) > 0:
			stop(fmt.Errorf("%w: %d keys, such as %s", ErrDrifted, len(lost), lost[0]))
			return
		default:
			s.confirm(l)
			s.lookBeside(ctx)
		}
	}
}

// awaitCheck waits until a check is due or requested. It returns false if ctx ended.
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

// The watch is asked about a difference after firstLook, then less and less often, but at
// least each lastLook.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 200 * time.Millisecond
)

// errRoom ends a watch, so that the next one takes keys that were ignored.
var errRoom = errors.New("there is room for keys now that were ignored")

// compare lists the store and returns the keys that the watch has lost. It returns as soon as
// the watch has delivered all that the listing shows. The error is errRoom if that is all, and ignored keys can be taken.
func (s *Source) compare(ctx context.Context) (about Listing, lost []string, err error) {
	s.locked(s.mirror.watchTouches)
	defer s.locked(s.mirror.forgetTouches)
	l, err := s.list(ctx)
	if err != nil {
		return Listing{}, nil, err
	}
	listed := l.states()
	lost, room := s.differing(listed)
	end := time.Now().Add(s.o.Grace)
	for look := firstLook; len(lost) > 0 && time.Now().Before(end); look = min(2*look, lastLook) {
		if !backoff.Sleep(ctx, min(look, time.Until(end))) {
			return Listing{}, nil, ctx.Err()
		}
		s.locked(func() { lost = s.mirror.lacking(lost, listed) })
	}
	if room && len(lost) == 0 {
		return Listing{}, nil, errRoom
	}
	return l.about, lost, nil
}

// differing returns the keys whose state in the mirror differs from a listing, without those that were ignored. It reports
// whether the listing has some of these: there was room for them.
func (s *Source) differing(listed map[string]state) (keys []string, room bool) {
	s.locked(func() {
		keys = slices.DeleteFunc(s.mirror.differing(listed), func(key string) bool {
			wasIgnored := s.ignored.digests[digestOf([]byte(key))]
			room = room || wasIgnored
			return wasIgnored
		})
	})
	return keys, room
}

// locked runs f with the lock of the mirror.
func (s *Source) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}
