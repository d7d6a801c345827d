package filedb_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

const root = "/vnf-agent/vpp1/"

// patience is how long a test waits for what must come.
const patience = testkit.Patience

// A mirror is what a watch has told, and a log of it.
type mirror struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and made anew at every batch
	events   map[string]kvdbsync.Event
	deleted  map[string]int
	batches  []kvdbsync.Batch
	problems []error
	err      error
	ended    chan struct{}
}

// newMirror watches until stop, which returns the error of the watch.
func newMirror(db *filedb.DB) (m *mirror, stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	m = &mirror{changed: make(chan struct{}), events: map[string]kvdbsync.Event{}, deleted: map[string]int{}, ended: make(chan struct{})}
	go m.run(ctx, db)
	return m, func() error {
		cancel()
		<-m.ended
		return m.err
	}
}

// mirrored watches until the test ends.
func mirrored(t testing.TB, db *filedb.DB) *mirror {
	t.Helper()
	m, stop := newMirror(db)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("watch ended with %v", err)
		}
	})
	m.until(t, "the first batch", m.synced)
	return m
}

func (m *mirror) synced() bool { return len(m.batches) > 0 }

func (m *mirror) run(ctx context.Context, db *filedb.DB) {
	defer close(m.ended)
	for again := true; again; {
		again = false
		for b, err := range db.Watch(ctx, root) {
			if again = errors.Is(err, filedb.ErrVanished); again {
				continue // the next listing says what is gone
			}
			m.mu.Lock()
			m.take(b, err)
			close(m.changed)
			m.changed = make(chan struct{})
			m.mu.Unlock()
		}
	}
}

func (m *mirror) take(b kvdbsync.Batch, err error) {
	m.batches = append(m.batches, b)
	m.err = err
	if b.Synced {
		for key := range m.events {
			if !slices.ContainsFunc(b.Events, func(e kvdbsync.Event) bool { return e.Key == key }) {
				delete(m.events, key)
				m.deleted[key]++
			}
		}
	}
	for _, e := range b.Events {
		m.events[e.Key] = e
		if e.Value == nil && e.Err == nil {
			delete(m.events, e.Key)
			m.deleted[e.Key]++
		}
	}
	if b.Problems != nil {
		m.problems = b.Problems
	}
}

// until waits for cond, which is asked under the lock of the mirror.
func (m *mirror) until(t interface{ Fatalf(string, ...any) }, what string, cond func() bool) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		m.mu.Lock()
		ok, changed := cond(), m.changed
		m.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-m.ended:
			t.Fatalf("the watch ended: %v", m.err)
		case <-deadline.C:
			m.mu.Lock()
			defer m.mu.Unlock()
			t.Fatalf("waited in vain for %s\nentries: %v\nproblems: %v", what, m.events, m.problems)
		}
	}
}
