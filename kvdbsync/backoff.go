package kvdbsync

import (
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
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
	wait := rand.N(b.bound) //nolint:gosec // spreads load; keeps no secret
	b.bound = min(2*b.bound, b.Max)
	return wait
}

// Reset begins anew.
func (b *Backoff) Reset() { b.bound = 0 }

const (
	// eagerly is the longest bound of an attempt after another that the store did not
	// answer, in the first time of an outage. Such attempts cost the store little, and a
	// server that is restarted is back within seconds.
	eagerly = time.Second
	// freeResets is how often the back-off starts over in a row after watches that
	// ended soon.
	freeResets = 10
)

// A pacer decides how long a Source waits after a watch has ended.
//
// The back-off starts over after a watch that was synced. One that was synced for less
// than the longest bound needs a token for that: there are freeResets, and a new one
// comes each ten times the longest bound. So a store that breaks after each listing is
// soon listed as rarely as one that does not answer.
type pacer struct {
	retry  Backoff
	max    time.Duration
	resets *rate.Limiter
}

func newPacer(least, most time.Duration) *pacer {
	return &pacer{
		retry: Backoff{Min: least}, max: most,
		resets: rate.NewLimiter(rate.Every(10*most), freeResets),
	}
}

// next returns how long to wait after a watch that ended in a state, which has lasted
// for a time: Synced, since it was synced; otherwise since the source is not. Syncing
// means that the store answered and that the listing was not complete.
func (p *pacer) next(ended State, lasted time.Duration) time.Duration {
	p.retry.Max = p.max
	switch {
	case ended == Synced && (lasted >= p.max || p.resets.Allow()):
		p.retry.Reset()
	case (ended == Connecting || ended == Lost) && lasted < p.max:
		p.retry.Max = min(eagerly, p.max)
	}
	return p.retry.Next()
}
