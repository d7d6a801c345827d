package kvdbsync

import (
	"math/rand/v2"
	"time"
)

// A Backoff spreads attempts: exponential with full jitter, so that the agents
// of a whole site do not come back to a store at the same moment.
type Backoff struct {
	Min, Max time.Duration
	bound    time.Duration // of the next wait; 0: Min
}

// Next returns a time in [0, bound), where bound begins as Min and doubles each time
// up to Max.
func (b *Backoff) Next() time.Duration {
	if b.bound == 0 {
		b.bound = b.Min
	}
	wait := rand.N(b.bound)
	b.bound = min(2*b.bound, b.Max)
	return wait
}

// Reset begins anew.
func (b *Backoff) Reset() { b.bound = 0 }
