package conformance

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
)

// Memory is the smallest store that passes the suite, for tests of what stands
// on a connector. It can lose its connection, and a change. It is ready to use.
type Memory struct {
	// Each watch has a queue of its own, so a slow reader delays nobody.
	mu       sync.Mutex // guards what follows
	rev      int64
	replaced int // times that another store came in its place
	pairs    map[string]kvdbsync.Event
	watchers map[*memoryWatch]bool
	down     error
	sessions map[*memorySession]bool
	severed  bool
}

// A memoryWatch holds the batches that one Watch has not yielded yet.
type memoryWatch struct {
	prefix string
	todo   []kvdbsync.Batch
	failed error
	more   wake.Signal // set when todo or failed changes
}

// Watch implements kvdbsync.Connector.
func (m *Memory) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		w := m.begin(prefix)
		defer m.end(w)
		for {
			// All at once, and then without the lock: a slow reader must not stop the
			// store.
			batches, err := m.next(w)
			for _, b := range batches {
				if !yield(b, nil) {
					return
				}
			}
			if err != nil {
				yield(kvdbsync.Batch{}, err)
				return
			}
			select {
			case <-w.more.C():
			case <-ctx.Done():
				return
			}
		}
	}
}

// begin lists and registers the watch under one lock: no change falls in between.
func (m *Memory) begin(prefix string) *memoryWatch {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &memoryWatch{prefix: prefix, failed: m.down, more: wake.New()}
	if m.down == nil {
		// The listing is the first batch; an empty one, too.
		w.todo = []kvdbsync.Batch{{Events: m.under(prefix), Rev: m.rev, Synced: true, Identity: fmt.Sprint("memory-", m.replaced)}}
	}
	if m.watchers == nil {
		m.watchers = map[*memoryWatch]bool{}
	}
	m.watchers[w] = true
	return w
}

// end forgets the watch, so later changes are not queued for it.
func (m *Memory) end(w *memoryWatch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watchers, w)
}

// next takes all queued batches, and the error that ends the watch after them.
func (m *Memory) next(w *memoryWatch) ([]kvdbsync.Batch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	todo := w.todo
	w.todo = nil
	return todo, w.failed
}

// under returns the pairs below prefix, sorted by key. The caller holds mu.
func (m *Memory) under(prefix string) []kvdbsync.Event {
	var events []kvdbsync.Event
	for _, key := range slices.Sorted(maps.Keys(m.pairs)) {
		if strings.HasPrefix(key, prefix) {
			events = append(events, m.pairs[key])
		}
	}
	return events
}

// Beside implements kvdbsync.Browser.
func (m *Memory) Beside(_ context.Context, prefix string, known []string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Sorted(maps.Keys(m.pairs))
	return kvdbsync.Leap(prefix, known, func(from, to string) (string, error) {
		at, _ := slices.BinarySearch(keys, from)
		if at == len(keys) || keys[at] >= to {
			return "", nil
		}
		return keys[at], nil
	})
}

// Txn changes several keys at once; a nil Value deletes.
func (m *Memory) Txn(events ...kvdbsync.Event) { m.change(events, true) }

// Lose changes the store like Txn, and tells no watch that is running.
func (m *Memory) Lose(events ...kvdbsync.Event) { m.change(events, false) }

// change is Txn or, without tell, Lose.
func (m *Memory) change(events []kvdbsync.Event, tell bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changeLocked(events, tell)
}

// changeLocked makes the changes as one revision. The caller holds mu.
func (m *Memory) changeLocked(events []kvdbsync.Event, tell bool) {
	if m.pairs == nil {
		m.pairs = map[string]kvdbsync.Event{}
	}
	m.rev++
	for _, e := range events {
		e.Rev = m.rev
		for s := range m.sessions { // the last writer owns the key
			delete(s.keys, e.Key)
		}
		if e.Value == nil && e.Err == nil {
			delete(m.pairs, e.Key)
		} else {
			m.pairs[e.Key] = e
		}
	}
	if !tell {
		return
	}
	for w := range m.watchers {
		w.tell(kvdbsync.Batch{Events: events, Rev: m.rev})
	}
}

// tell queues the events below the prefix of the watch as one batch.
func (w *memoryWatch) tell(b kvdbsync.Batch) {
	var mine []kvdbsync.Event
	for _, e := range b.Events {
		if strings.HasPrefix(e.Key, w.prefix) {
			e.Rev = b.Rev
			mine = append(mine, e)
		}
	}
	if len(mine) > 0 {
		w.todo = append(w.todo, kvdbsync.Batch{Events: mine, Rev: b.Rev})
		w.wake()
	}
}

// wake makes Watch look at its queue. The caller holds the Memory's mu.
func (w *memoryWatch) wake() {
	w.more.Set()
}

// Replace puts an empty store in the place of this one, and ends the running watches
// with err. With same it is the same store, which has lost its data.
func (m *Memory) Replace(same bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !same {
		m.replaced++
	}
	m.rev = 1
	// Nobody is told: running watches end with the error.
	clear(m.pairs)
	for w := range m.watchers {
		w.failed = err
		w.wake()
	}
}

// Fail ends the running watches with err, and those that begin before Fail(nil).
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = err
	if err == nil {
		return
	}
	for w := range m.watchers {
		w.failed = err
		w.wake()
	}
}
