package scheduler

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A readCall is a call of Retrieve or RetrieveSome. Its own goroutine waits for the answer;
// Run's goroutine applies it in parts.
type readCall struct {
	reading
	calls  *readCalls
	cancel context.CancelFunc
	ended  bool // guarded by calls.mu; the result may be used afterwards

	// The result.
	got retrieved
	err error

	// stale has the keys with newer knowledge than the call, and their bases. Run's goroutine
	// owns it and the fields below.
	stale    map[string]bool
	lost     []string // keys that were not found and are not applied yet
	compared bool     // lost was computed
}

// readCalls has the calls whose result is not applied yet.
type readCalls struct {
	ready wake.Signal // set when a call has ended

	mu  sync.Mutex // guards readCall.ended
	all []*readCall
}

// hasEnded reports whether the result may be read. After that, only Run's goroutine uses
// the call.
func (c *readCall) hasEnded() bool {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	return c.ended
}

// end makes the result visible and wakes the loop. The goroutine of the call does nothing
// after it.
func (c *readCall) end() {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	c.ended = true
	c.calls.ready.Set()
}

func (cs *readCalls) drop(c *readCall) {
	cs.all = slices.DeleteFunc(cs.all, func(o *readCall) bool { return o == c })
}

// call begins to read back the values of rd. Values that r is about to declare count as
// desired. The call ends with ctx, or when nobody waits for r any more.
func (s *Scheduler) call(ctx context.Context, r *run, rd reading) *readCall {
	ws := s.desiredOf(rd, r.coming)
	c := &readCall{reading: rd, calls: &s.calls, stale: map[string]bool{}}
	ctx, c.cancel = until(ctx, r.nobody)
	s.calls.all = append(s.calls.all, c)
	go func() {
		defer c.end()
		c.got, c.err = s.collect(ctx, rd, ws)
	}()
	return c
}

// desiredOf returns the desired values of a reading, for Retrieve.
func (s *Scheduler) desiredOf(rd reading, coming map[string]*graph.Value) (ws []kind.Desired) {
	for key, v := range coming {
		if v.Kind == graph.Kind(rd.d) {
			ws = append(ws, kind.Desired{Key: key, Value: kind.Message(v)})
		}
	}
	slices.SortFunc(ws, func(a, b kind.Desired) int { return strings.Compare(a.Key, b.Key) })
	asked := s.nodesOf(rd)
	if rd.keys != nil && rd.d.RetrieveSome == nil {
		asked = s.graph.Of(rd.d) // Retrieve needs all desired values
	}
	ws = slices.Grow(ws, len(asked))
	for _, n := range asked {
		if v := n.Desired(); v != nil && v.Err == nil && coming[n.Key()] == nil {
			ws = append(ws, kind.Desired{Key: n.Key(), Value: kind.Message(v)})
		}
	}
	return ws
}

// learned records that the actual value of key is known from now on, or changes: calls that
// have begun say nothing about it, nor about the values from which it is derived.
func (s *Scheduler) learned(key string) {
	if len(s.calls.all) == 0 {
		return
	}
	keys := map[string]bool{key: true}
	if n := s.graph.Node(key); n != nil {
		for b := n.Base(); b != nil; b = b.Base() {
			keys[b.Key()] = true
		}
	}
	for _, c := range s.calls.all {
		maps.Copy(c.stale, keys)
	}
}
