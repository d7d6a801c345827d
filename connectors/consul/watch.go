package consul

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A watch is one call of Connector.Watch.
type watch struct {
	client *client
	log    *slog.Logger
	prefix string
	emit   func(kvdbsync.Batch) error
	index  uint64 // Consul's index in the last answer; 0: the next answer counts whole
	same   bool   // the next question must use the connection of the last answer
	synced bool   // the first answer was emitted
	known  known
	pace   pace
	// unnamed are the pairs that the last answer had in vain.
	unnamed unnamed

	waiting waiting // shared with the probes
}

// newWatch returns a watch that has not asked yet.
func newWatch(c *client, log *slog.Logger, prefix string, emit func(kvdbsync.Batch) error) *watch {
	return &watch{client: c, log: log, prefix: prefix, emit: emit, pace: newPace()}
}

// run emits the pairs under the prefix and then their changes, until an error.
func (w *watch) run(ctx context.Context) error {
	for {
		bytes, err := w.next(ctx)
		if err == nil {
			err = w.pace.wait(ctx, bytes)
		}
		if err == nil {
			continue
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("watching %s in consul: %w", w.prefix, err)
	}
}

// next sends one question and returns the size of the answer.
func (w *watch) next(ctx context.Context) (bytes int, err error) {
	begun := time.Now()
	a, err := w.ask(ctx)
	if errors.Is(err, errIndexBack) {
		w.startOver(err)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer a.close()
	early := time.Since(begun) < w.client.cfg.WaitTime
	if a.index < w.index || w.index > 0 && a.index == w.index && early && !w.isCurrent(ctx) {
		w.startOver(fmt.Errorf("%w: the answer to a question for more than %d has %d", errIndexBack, w.index, a.index))
		return 0, nil
	}
	b := kvdbsync.Batch{Rev: int64(a.index), Synced: w.index == 0}
	b.Events, err = w.known.differing(a, w.index == 0, w.pages(b.Rev))
	if err != nil {
		return a.bytes, err
	}
	b.Problems = a.unnamed.problems(w.unnamed)
	w.unnamed = a.unnamed
	w.index, w.same, w.synced = max(a.index, 1), !a.last, true // a question with index 0 would not wait
	return a.bytes, w.emit(b)
}

// ask sends the next question. A probe may cancel it.
func (w *watch) ask(ctx context.Context) (*answer, error) {
	ctx, withdraw := context.WithCancelCause(ctx)
	w.waiting.begin(w.index, w.known.count == 0, withdraw)
	defer w.waiting.end()
	a, err := w.client.list(ctx, question{
		prefix: storeKey(w.prefix), after: w.index, wait: w.client.cfg.WaitTime, same: w.same,
	})
	if err != nil {
		withdraw(nil)
		return nil, err
	}
	end := a.end
	a.end = func(why error) {
		end(why)
		withdraw(nil)
	}
	return a, nil
}

// startOver makes the next answer count whole.
func (w *watch) startOver(why error) {
	w.log.Info("listing consul again", "prefix", w.prefix, "why", why)
	w.index, w.same = 0, false
}

// pages emits parts of the first answer as they arrive. It returns nil for later answers:
// each of them is one change and so one batch.
func (w *watch) pages(rev int64) func([]kvdbsync.Event) error {
	if w.synced {
		return nil
	}
	return func(page []kvdbsync.Event) error { return w.emit(kvdbsync.Batch{Rev: rev, Events: page}) }
}

// isCurrent reports whether the index of the watch is still that of the prefix. The same index before the end of
// the wait time has two causes. The server has restored a snapshot, probably with a lower index: it would wait
// until this index exceeds the watch's index. Or it has a shorter max_query_time.
func (w *watch) isCurrent(ctx context.Context) bool {
	now, err := w.client.indexes(ctx, storeKey(w.prefix), 0)
	return err == nil && compare(asked{after: w.index, empty: w.known.count == 0}, now, 0) == upToDate
}
