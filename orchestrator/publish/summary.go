package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/summary"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// A Summaries writes the agent's summary into one store, for agentctl fleet. The key
// belongs to no session, so that it shows when an agent was last seen. Name, Label, Open
// and Scheduler are required.
//
// Each agent of a large fleet writes at its own moment: the first summary comes at a random
// moment within the first sixth of Period. Then the values are counted every sixth of
// Period. The summary is written if the counts have changed, and otherwise once in a Period.
type Summaries struct {
	Name  string // name of the store, for logs
	Label string
	// Version is that of the program.
	Version string
	// Open returns the store, and what ends its use. It is called again after an error.
	Open      func(context.Context) (store kvdbsync.Store, end func(), err error)
	Scheduler *scheduler.Scheduler
	// Period is the longest time between two summaries. Defaults to 60 s.
	Period time.Duration
	// Timeout bounds each write. Defaults to 10 s.
	Timeout time.Duration
	Log     *slog.Logger // Defaults to discarding
	// Now is the clock of the host, which may be set back. Defaults to time.Now.
	Now func() time.Time
}

// countsPerPeriod is how often the values are counted in one Period.
const countsPerPeriod = 6

// Run writes until ctx ends, and at last that the agent has ended. It returns nil.
func (s Summaries) Run(ctx context.Context) error {
	if s.Period <= 0 {
		s.Period = time.Minute
	}
	if s.Timeout <= 0 {
		s.Timeout = 10 * time.Second
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	started := s.Now()
	retry := backoff.Backoff{Min: s.Period / countsPerPeriod, Max: s.Period}
	level := slog.LevelWarn                    // repeated failures are logged at debug level
	wait := rand.N(s.Period / countsPerPeriod) //nolint:gosec // it only spreads the writes of many agents
	for backoff.Sleep(ctx, wait) {
		err := guard.Run(func() error {
			return s.life(ctx, started, func() { retry.Reset(); level = slog.LevelWarn })
		})
		switch {
		case errors.Is(err, kvdbsync.ErrReadOnly):
			s.Log.Warn("cannot publish the summary into this store: it is read-only", "source", s.Name, "err", err)
			return nil
		case ctx.Err() != nil:
			return nil
		}
		wait = retry.Next()
		s.Log.Log(ctx, level, "cannot publish the summary", "source", s.Name, "err", err, "retry_in", wait)
		level = slog.LevelDebug
	}
	return nil
}

// life writes until the first error, or until ctx ends.
func (s Summaries) life(ctx context.Context, started time.Time, worked func()) error {
	store, end, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer end()
	var last summary.Summary // that the store holds
	var written time.Time    // when, with the monotonic clock; its zero value is long ago
	for {
		began := time.Now()
		counted := s.count(started)
		took := time.Since(began)
		// Half a count early, so that the next one is not late.
		due := s.Period - s.Period/(2*countsPerPeriod)
		// After the clock was set back, the store has a time of the future.
		setBack := counted.Time.Before(last.Time)
		if !sameCounts(last, counted) || setBack || time.Since(written) >= due {
			if err := s.write(ctx, store, counted); err != nil {
				return err
			}
			last, written = counted, began
			worked()
		}
		if !backoff.Sleep(ctx, max(s.Period/countsPerPeriod, maxShare*took)) {
			return s.sayEnded(ctx, store, counted)
		}
	}
}

// maxShare makes counting take at most a hundredth of the time, also with a million values.
const maxShare = 100

// sayEnded writes the last summary. Its time is limited, so that a store cannot delay the end of the
// agent.
func (s Summaries) sayEnded(ctx context.Context, store kvdbsync.Store, last summary.Summary) error {
	last.Time, last.Ended = s.now(), true
	s.Timeout = min(s.Timeout, closeTimeout)
	err := s.write(context.WithoutCancel(ctx), store, last)
	if err != nil {
		s.Log.Debug("the summary does not say that the agent has ended", "source", s.Name, "err", err)
	}
	return ctx.Err()
}

// write writes one summary.
func (s Summaries) write(ctx context.Context, store kvdbsync.Store, what summary.Summary) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	if err := store.Put(ctx, summary.Key(s.Label), what.Text()); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return nil
}

// count counts the declared values. It reads a snapshot, so no transaction waits for it.
func (s Summaries) count(started time.Time) summary.Summary {
	out := summary.Summary{
		Label: s.Label, Version: s.Version, Started: started.UTC().Truncate(time.Second), Time: s.now(),
		Period: int((s.Period + time.Second - 1) / time.Second), States: map[string]int{}, Derived: map[string]int{},
	}
	var oldest *scheduler.Status
	for st := range s.Scheduler.All() {
		if st.Base != "" {
			if isProblem(st.State) {
				out.Derived[st.State.String()]++
			}
			continue
		}
		switch {
		case !strings.HasPrefix(st.Key, config):
			continue
		case st.State == scheduler.Removed, st.State == scheduler.Obtained, st.State == scheduler.Discovered: // nobody declares it
			continue
		}
		out.States[st.State.String()]++
		if st.State == scheduler.Pending && (oldest == nil || before(st, oldest)) {
			oldest = st
		}
	}
	if oldest != nil {
		out.Oldest = &summary.Waiting{Key: oldest.Key, Since: oldest.Since.UTC().Truncate(time.Second)}
	}
	return out
}

// before orders values by the time of their state. The order of values with one time does
// not change either, since each change of the oldest one is a write.
func before(a, b *scheduler.Status) bool {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key)) < 0
}

// now returns the time in the precision of a summary.
func (s Summaries) now() time.Time { return s.Now().UTC().Truncate(time.Second) }

// sameCounts reports that b says nothing new about the values.
func sameCounts(a, b summary.Summary) bool {
	if !maps.Equal(a.States, b.States) || !maps.Equal(a.Derived, b.Derived) || (a.Oldest == nil) != (b.Oldest == nil) {
		return false
	}
	return a.Oldest == nil || *a.Oldest == *b.Oldest
}
