package readback

import (
	"context"
	"slices"
	"sync"

	"github.com/keyplane/keyplane/internal/wake"
)

// A call is a call of Retrieve or RetrieveSome. Its own goroutine waits for the answer;
// the scheduler's goroutine applies it in parts.
type call struct {
	Part
	calls  *calls
	cancel context.CancelFunc
	ended  bool // guarded by calls.mu; the result may be used afterwards

	// The result.
	got Found
	err error

	// stale has the keys with newer knowledge than the call, and their bases. The scheduler's
	// goroutine owns it and the fields below.
	stale    map[string]staleness
	lost     []string // keys that were not found and are not applied yet
	compared bool     // lost was computed
	again    bool     // a base is to be read again
}

// A staleness says why the result of a call does not count for a key.
type staleness uint8

const (
	fresh   staleness = iota // it counts
	ofParts                  // a value that is derived from the key's is known better; what else the key has is not
	stale                    // the key is known better
)

// outdated reports whether the result of the call does not count for a key. A base that is left out is read again: what is known
// of its parts does not say that it has not changed itself.
func (c *call) outdated(key string) bool {
	how := c.stale[key]
	c.again = c.again || how == ofParts
	return how != fresh
}

// calls are those whose result is not applied yet.
type calls struct {
	ready wake.Signal // set when a call has ended

	mu  sync.Mutex // guards call.ended
	all []*call
}

// hasEnded reports whether the result may be read. After that, only the scheduler's goroutine uses
// the call.
func (c *call) hasEnded() bool {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	return c.ended
}

// end makes the result visible and wakes the loop. The goroutine of the call does nothing
// after it.
func (c *call) end() {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	c.ended = true
	c.calls.ready.Set()
}

func (cs *calls) drop(c *call) {
	cs.all = slices.DeleteFunc(cs.all, func(o *call) bool { return o == c })
}

// begin begins to read back a part. The call ends with ctx, or when nobody waits for r any more.
func (rb *Reader) begin(ctx context.Context, r *Reading, p Part) *call {
	desired := rb.desiredOf(p, r.Coming)
	c := &call{Part: p, calls: &rb.calls, stale: map[string]staleness{}}
	ctx, c.cancel = until(ctx, r.Nobody)
	rb.calls.all = append(rb.calls.all, c)
	go func() {
		defer c.end()
		c.got, c.err = rb.Collect(ctx, p, desired)
	}()
	return c
}

// until returns a context that also ends when done is closed.
func until(ctx context.Context, done <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if done != nil {
		go func() {
			select {
			case <-done:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// Learned records that the actual value of key is known from now on, or changes: calls that
// have begun say nothing about it, nor about the values from which it is derived.
func (rb *Reader) Learned(key string) {
	if len(rb.calls.all) == 0 {
		return
	}
	for _, c := range rb.calls.all {
		c.stale[key] = stale
	}
	n := rb.Graph.Node(key)
	if n == nil {
		return
	}
	for b := n.Base(); b != nil; b = b.Base() {
		for _, c := range rb.calls.all {
			c.stale[b.Key()] = max(c.stale[b.Key()], ofParts)
		}
	}
}
