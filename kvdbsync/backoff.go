package kvdbsync

import (
	"math/rand/v2"
	"time"
)

// A backoff spreads attempts: exponential with full jitter, so that the agents
// of a whole site do not come back to a store at the same moment.
type backoff struct {
	min, max time.Duration
	bound    time.Duration // of the next wait; 0: min
}

// next returns a time in [0, bound) and doubles the bound.
func (b *backoff) next() time.Duration {
	if b.bound == 0 {
		b.bound = b.min
	}
	wait := rand.N(b.bound)
	b.bound = min(2*b.bound, b.max)
	return wait
}

func (b *backoff) reset() { b.bound = 0 }
