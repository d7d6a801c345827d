package scheduler

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/internal/mailbox"
)

// A Watch yields each change of status, the newest of each value: one that its
// reader is too slow for is replaced, never lost.
type Watch struct {
	prefix string
	ws     *watchers
	box    *mailbox.Box[*Status]
}

// watchers are the Watches that are open.
type watchers struct {
	mu  sync.RWMutex
	all []*Watch
}

// Watch begins to watch the values whose key has the prefix. Close ends it.
func (s *Scheduler) Watch(prefix string) *Watch {
	w := &Watch{prefix: prefix, ws: &s.watchers, box: mailbox.New[*Status]()}
	w.ws.mu.Lock()
	defer w.ws.mu.Unlock()
	w.ws.all = append(w.ws.all, w)
	return w
}

// Close ends the watch. What it has not yielded is dropped.
func (w *Watch) Close() {
	w.ws.mu.Lock()
	defer w.ws.mu.Unlock()
	w.ws.all = slices.DeleteFunc(w.ws.all, func(o *Watch) bool { return o == w })
}

// Next waits for changes and returns them, in the order in which they first
// happened. A value that is gone is REMOVED.
func (w *Watch) Next(ctx context.Context) ([]*Status, error) { return w.box.Next(ctx) }

func (ws *watchers) publish(st *Status) {
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	for _, w := range ws.all {
		if strings.HasPrefix(st.Key, w.prefix) {
			w.box.Put(st.Key, st)
		}
	}
}
