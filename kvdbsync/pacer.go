package kvdbsync

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/keyplane/keyplane/internal/backoff"
)

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
	retry  backoff.Backoff
	max    time.Duration
	resets *rate.Limiter
}

func newPacer(least, most time.Duration) *pacer {
	return &pacer{
		retry: backoff.Backoff{Min: least}, max: most,
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
