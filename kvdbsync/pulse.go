package kvdbsync

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
)

// A Pulse notes when something was last heard of a store, so that its silence can be
// bounded and not the time of an answer, which may be long on a slow line. The zero
// Pulse is ready; its methods may be called at the same time. It follows the monotonic
// clock.
type Pulse struct{ at atomic.Pointer[time.Time] }

// Beat says that something was heard now.
func (p *Pulse) Beat() {
	now := time.Now()
	p.at.Store(&now)
}

// After tells whether something was heard after a moment.
func (p *Pulse) After(moment time.Time) bool {
	at := p.at.Load()
	return at != nil && at.After(moment)
}

// Quiet is for how long nothing was heard, at most the time since begun.
func (p *Pulse) Quiet(begun time.Time) time.Duration {
	if at := p.at.Load(); at != nil && at.After(begun) {
		return time.Since(*at)
	}
	return time.Since(begun)
}

// Bound returns a context that ends for the reason why once nothing was heard for limit.
// The caller calls end, which also ends the goroutine that Bound starts.
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
