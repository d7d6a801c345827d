package kvdbsync

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
)

// A Pulse records the last time at which a store was heard. It bounds the silence of a
// store, and not the time of an answer, which may be long on a slow line. The zero Pulse
// works. Any goroutine may use it. It uses the monotonic clock.
type Pulse struct{ at atomic.Pointer[time.Time] }

// Beat records that the store was heard now.
func (p *Pulse) Beat() {
	now := time.Now()
	p.at.Store(&now)
}

// After reports whether the store was heard after a moment.
func (p *Pulse) After(moment time.Time) bool {
	at := p.at.Load()
	return at != nil && at.After(moment)
}

// Quiet returns the duration of the present silence, at most the time since begun.
func (p *Pulse) Quiet(begun time.Time) time.Duration {
	if at := p.at.Load(); at != nil && at.After(begun) {
		return time.Since(*at)
	}
	return time.Since(begun)
}

// Bound returns a context that ends with the given cause after a silence of limit. The
// caller must call end, which also ends the goroutine that Bound starts.
func (p *Pulse) Bound(ctx context.Context, limit time.Duration, why error) (bounded context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	begun := time.Now()
	go func() {
		for left := limit; left > 0; left = limit - p.Quiet(begun) {
			if !backoff.Sleep(ctx, left) {
				return
			}
		}
		cancel(why)
	}()
	return ctx, func() { cancel(nil) }
}
