package scheduler

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/internal/mailbox"
)

// A Watch yields changes of statuses. If its reader is slow, it yields the newest status
// of each value and misses none.
type Watch struct {
	prefix string
	ws     *watchers
	box    *mailbox.Box[*Status]
}

// watchers has the open Watches.
type watchers struct {
	mu  sync.RWMutex
	all []*Watch
}

// Watch watches the values with the key prefix. Close ends it.
func (s *Scheduler) Watch(prefix string) *Watch {
	w := &Watch{prefix: prefix, ws: &s.watchers, box: mailbox.New[*Status]()}
	w.ws.mu.Lock()
	defer w.ws.mu.Unlock()
	w.ws.all = append(w.ws.all, w)
	return w
}

// Close ends the watch and drops changes that it has not yielded.
func (w *Watch) Close() {
	w.ws.mu.Lock()
	defer w.ws.mu.Unlock()
	w.ws.all = slices.DeleteFunc(w.ws.all, func(o *Watch) bool { return o == w })
}

// Next waits for changes and returns them, in the order of the first change of each value.
// A removed value is REMOVED.
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
