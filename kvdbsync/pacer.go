package kvdbsync

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/keyplane/keyplane/internal/backoff"
)

const (
	// eagerly is the longest bound between attempts at the start of an outage, as long as
	// the store does not answer. Such attempts cost the store little, and a restarted
	// server is back within seconds.
	eagerly = time.Second
	// freeResets is the number of times in a row that the back-off starts over after
	// watches that ended soon.
	freeResets = 10
)

// A pacer decides how long a Source waits after a watch has ended.
//
// The back-off starts over after a watch that was synced. A watch that was synced for less
// than the longest bound needs a token for that. There are freeResets tokens, and a new
// one comes every ten times the longest bound. So a store that breaks after each listing
// is soon listed as rarely as one that does not answer.
type pacer struct {
	retry  backoff.Backoff
	max    time.Duration
	resets *rate.Limiter
}

// newPacer returns the back-off of one source. A store that serves and fails in turn would
// end the back-off each time, so the number of resets in a time is limited.
func newPacer(least, most time.Duration) *pacer {
	return &pacer{
		retry: backoff.Backoff{Min: least}, max: most,
		resets: rate.NewLimiter(rate.Every(10*most), freeResets),
	}
}

// next returns the wait after a watch that ended in a state. lasted is the time since the
// source was synced for Synced, else the time since it was lost. Syncing means that the
// store answered but the listing was not complete.
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
