package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
)

// A Local is the content of a source that programs declare, in this process or by calls.
// It is complete from the start. The Memory is its only store.
//
// The agent has two, which take effect over all stores: localclient (priority 50) for
// programs in its process, and grpc (40) for callers.
//
// Requests are processed one after the other, each as one transaction. Methods may be
// called from any goroutine, but not from a verb.
type Local struct {
	ready   wake.Signal // set when there are requests
	stopped chan struct{}

	mu       sync.Mutex // guards requests
	requests []*request
}

// NewLocal returns a Local for Source.Local.
func NewLocal() *Local {
	return &Local{ready: wake.New(), stopped: make(chan struct{})}
}

// A request is a change whose caller waits for the result.
type request struct {
	pairs   []kvdbsync.Pair
	replace bool
	refused []scheduler.KeyError

	done   chan struct{} // closed when the fields below are set
	record *scheduler.Record
	err    error
}

// Apply sets the pairs that have a value and deletes the others. It returns the record of
// the transaction, which is nil if no effective value changed. The error is a
// *scheduler.TxnError if values were refused or verbs failed. When ctx ends, a request
// that has not begun is withdrawn; one that has begun goes on. Keys are relative to the
// prefix of the agent.
func (l *Local) Apply(ctx context.Context, pairs []kvdbsync.Pair) (*scheduler.Record, error) {
	return l.do(ctx, &request{pairs: pairs, done: make(chan struct{})})
}

// Replace is Apply, and deletes all keys that are not in pairs.
func (l *Local) Replace(ctx context.Context, pairs []kvdbsync.Pair) (*scheduler.Record, error) {
	return l.do(ctx, &request{pairs: pairs, replace: true, done: make(chan struct{})})
}

func (l *Local) do(ctx context.Context, r *request) (*scheduler.Record, error) {
	l.put(r)
	select {
	case <-r.done:
		return r.record, r.err
	case <-l.stopped:
		return nil, ErrStopped
	case <-ctx.Done():
		if l.withdraw(r) {
			return nil, fmt.Errorf("not begun: %w", ctx.Err())
		}
		return nil, fmt.Errorf("begun, and not done yet: %w", ctx.Err())
	}
}

func (l *Local) put(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
	l.signal()
}

func (l *Local) signal() {
	l.ready.Set()
}

func (l *Local) withdraw(r *request) (waited bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.requests, r)
	if i >= 0 {
		l.requests = slices.Delete(l.requests, i, i+1)
	}
	return i >= 0
}

// next takes the oldest request, or nil.
func (l *Local) next() *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.requests) == 0 {
		return nil
	}
	r := l.requests[0]
	if l.requests = l.requests[1:]; len(l.requests) > 0 {
		l.signal()
	}
	return r
}

// events returns the changes of a request. The last pair of a key counts.
func (r *request) events(l *source) []kvdbsync.Event {
	named := make(map[string]bool, len(r.pairs))
	var out []kvdbsync.Event
	for _, p := range slices.Backward(r.pairs) {
		if !named[p.Key] {
			named[p.Key] = true
			out = append(out, kvdbsync.Event{Key: p.Key, Value: p.Value})
		}
	}
	slices.Reverse(out)
	if r.replace {
		for _, e := range removals(l.entries) {
			if !named[e.Key] {
				out = append(out, e)
			}
		}
	}
	return out
}

// serve processes the next request of a source.
func (o *Orchestrator) serve(ctx context.Context, l *source) {
	r := l.Local.next()
	if r == nil {
		return
	}
	events := r.events(l)
	if err := o.record(l, events); err != nil {
		r.err = err
		close(r.done)
		return
	}
	changes, said := o.merge(l, events)
	for i, d := range said {
		if d.err != nil {
			r.refused = append(r.refused, scheduler.KeyError{Key: events[i].Key, Verb: kvscheduler.TxnOperation_VALIDATE, Err: d.err})
		}
	}
	l.publish()
	o.waiting = append(o.waiting, r)
	o.commit(ctx, l.Name, changes, false)
}

// ErrNotRecorded is the error of a request that the next start would not know.
var ErrNotRecorded = errors.New("the request is refused because it cannot be saved for the next start")

// record saves the changes of a request before they are applied.
func (o *Orchestrator) record(l *source, events []kvdbsync.Event) error {
	if o.memory == nil {
		return nil
	}
	decoded := o.decodeAll(len(events), func(i int) kvdbsync.Event { return events[i] })
	lessons := make([]unsavedEvent, len(events))
	for i := range events {
		events[i].Decoded = decoded[i]
		lessons[i] = l.unsavedEvent(&events[i], decoded[i].err)
	}
	if err := o.memory.Record(unsavedPairs(lessons)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotRecorded, err)
	}
	return nil
}

// answer gives the result of a transaction to the waiting callers.
func (o *Orchestrator) answer(record *scheduler.Record, err error) {
	for _, r := range o.waiting {
		r.record, r.err = record, r.failure(err)
		close(r.done)
	}
	o.waiting = nil
}

// failure returns the error of a request: that of its transaction, and the refused values
// that are not in it because another source is effective.
func (r *request) failure(err error) error {
	var all scheduler.TxnError
	if failed, ok := errors.AsType[*scheduler.TxnError](err); ok {
		all.Failed = failed.Failed
	} else if err != nil {
		return err
	}
	for _, k := range r.refused {
		told := func(f scheduler.KeyError) bool { return f.Key == k.Key && f.Verb == k.Verb }
		if !slices.ContainsFunc(all.Failed, told) {
			all.Failed = append(all.Failed, k)
		}
	}
	if len(all.Failed) == 0 {
		return nil
	}
	return &all
}

// stop ends all present and future waiting.
func (o *Orchestrator) stop() {
	close(o.stopped)
	for _, l := range o.sources {
		if l.Local != nil {
			close(l.Local.stopped)
		}
	}
}
