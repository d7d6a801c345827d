package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// A Watch yields each change of status, the newest of each value: one that its
// reader is too slow for is replaced, never lost.
type Watch struct {
	prefix string
	ws     *watchers
	box    mailbox[*Status]
}

// watchers are the Watches that are open.
type watchers struct {
	mu  sync.RWMutex
	all []*Watch
}

// Watch begins to watch the values whose key has the prefix. Close ends it.
func (s *Scheduler) Watch(prefix string) *Watch {
	w := &Watch{prefix: prefix, ws: &s.watchers, box: newMailbox[*Status]()}
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
func (w *Watch) Next(ctx context.Context) ([]*Status, error) { return w.box.next(ctx) }

func (ws *watchers) tell(st *Status) {
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	for _, w := range ws.all {
		if strings.HasPrefix(st.Key, w.prefix) {
			w.box.put(st.Key, st)
		}
	}
}

// Wait waits until what was submitted before has been processed and none of the
// keys is PENDING, RETRYING or MISSING, or ctx ends; its error then names one of
// those that are.
func (s *Scheduler) Wait(ctx context.Context, keys ...string) error {
	if err := s.ask(ctx, func(context.Context) {}); err != nil {
		return err
	}
	w := s.Watch("")
	defer w.Close()
	waiting := map[string]*Status{}
	asked := make(map[string]bool, len(keys))
	for _, key := range keys {
		asked[key] = true
	}
	s.board.each(func(st *Status) {
		if asked[st.Key] && unsettled(st.State) {
			waiting[st.Key] = st
		}
	})
	for len(waiting) > 0 {
		news, err := w.Next(ctx)
		if err != nil {
			return stillWaiting(waiting, err)
		}
		for _, st := range news {
			if waiting[st.Key] == nil {
				continue
			}
			if waiting[st.Key] = st; !unsettled(st.State) {
				delete(waiting, st.Key)
			}
		}
	}
	return nil
}

func stillWaiting(waiting map[string]*Status, err error) error {
	var first *Status
	for _, st := range waiting {
		if first == nil || st.Key < first.Key {
			first = st
		}
	}
	return fmt.Errorf("%d values are not settled, one is %s: %s %v: %w", len(waiting), first.Key, first.State, first.Details, err)
}

func unsettled(state State) bool {
	switch state {
	case kvscheduler.ValueState_PENDING, kvscheduler.ValueState_RETRYING, kvscheduler.ValueState_MISSING:
		return true
	}
	return false
}
