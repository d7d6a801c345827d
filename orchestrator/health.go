package orchestrator

import (
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Health is the state of a source at one moment.
type Health struct {
	// Health is that of the Feed, if it has one; otherwise only Source, State and Keys are set.
	kvdbsync.Health
	// Priority decides which source takes effect for a key: the highest does.
	Priority int
	// Complete means that the source has delivered a complete listing since the start.
	Complete bool
	// Confirmed is when the newest listing began that is in effect: each value of it was applied,
	// waits, was refused or has failed. A source without a store is always up to date. The zero
	// time means that there was no listing yet.
	Confirmed time.Time
	// Refused is the number of keys with a refused newest value.
	Refused int
	// Remembered is the number of keys from before the restart that the source has not
	// confirmed.
	Remembered int
	// Doubted is the number of keys that are missing but may not have been deleted. Their
	// items stay until a listing after the grace time decides.
	Doubted int
	// Unconfigured says that the source held keys at the last run and is not configured now. All its
	// keys are doubted, and only Forget removes them.
	Unconfigured bool

	// Faults are the first problems of the store that belong to no key.
	Faults []string
}

// maxFaults is the largest number of Faults.
const maxFaults = 20

// Health returns the state of each source, the highest priority first. It waits for no
// transaction.
func (o *Orchestrator) Health() []Health {
	var out []Health
	for _, l := range *o.shown.Load() {
		h := Health{
			Priority: l.Priority, Complete: l.published.complete.Load(), Refused: int(l.published.refused.Load()),
			Remembered: int(l.published.remembered.Load()), Doubted: int(l.published.doubted.Load()),
		}
		if faults := l.published.faults.Load(); faults != nil {
			h.Faults = *faults
		}
		if at := l.published.confirmed.Load(); at != nil {
			h.Confirmed = *at
		}
		if _, ok := l.Feed.(relister); !ok {
			h.Confirmed = time.Now()
		}
		if source, ok := l.Feed.(healthReporter); ok {
			h.Health = source.Health()
		} else if h.Health = (kvdbsync.Health{Keys: int(l.published.keys.Load())}); h.Complete {
			h.State = kvdbsync.Synced
		}
		h.Source = l.Name
		if h.Unconfigured = l.unconfigured; h.Unconfigured {
			h.State, h.Err = kvdbsync.Lost, errUnconfigured
		}
		out = append(out, h)
	}
	return out
}

// A healthReporter is a Feed that reports its health; *kvdbsync.Source is one.
type healthReporter interface{ Health() kvdbsync.Health }

// published is the state of a source that other goroutines may read.
type published struct {
	complete                           atomic.Bool
	keys, refused, remembered, doubted atomic.Int64
	faults                             atomic.Pointer[[]string] // the slice is immutable
	confirmed                          atomic.Pointer[time.Time]
}

// publish updates the published state.
func (l *source) publish() {
	remembered := 0
	if l.usesSaved {
		remembered = len(l.saved)
	}
	l.published.complete.Store(l.synced)
	l.published.keys.Store(int64(l.entries.Len()))
	l.published.refused.Store(int64(l.refused))
	l.published.remembered.Store(int64(remembered))
	doubted := l.doubtedKeys()
	if l.unconfigured {
		doubted = l.entries.Len()
	}
	l.published.doubted.Store(int64(doubted))
}

// publishProblems publishes the first problems as text.
func (l *source) publishProblems() {
	var texts []string
	for _, p := range l.problems[:min(len(l.problems), maxFaults)] {
		texts = append(texts, p.Error())
	}
	l.published.faults.Store(&texts)
}
