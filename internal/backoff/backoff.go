// Package backoff spreads repeated attempts over time.
//
// The waits are random, because the agents of a site lose a store at the same moment and
// must not all return to it at the same moment.
package backoff

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// A Backoff is exponential with full jitter: each wait is random below a bound, which
// starts at Min and doubles up to Max. Max may change at any time. It is for one goroutine.
type Backoff struct {
	Min, Max time.Duration
	bound    time.Duration // of the next wait; 0: Min
}

// Next returns the next wait, in [0, bound), and doubles the bound.
func (b *Backoff) Next() time.Duration {
	b.bound = min(cmp.Or(b.bound, b.Min), max(b.Max, b.Min))
	wait := rand.N(b.bound) //nolint:gosec // spreads load; keeps no secret
	b.bound = min(2*b.bound, b.Max)
	return wait
}

// Longest reports whether the bound has reached Max.
func (b *Backoff) Longest() bool { return b.bound >= b.Max }

// Reset starts over at Min.
func (b *Backoff) Reset() { b.bound = 0 }

// Sleep waits for d. It returns false as soon as ctx ends before that.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
