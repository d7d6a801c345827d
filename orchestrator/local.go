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

// A Local is the content of a layer that programs make: those in this process, or
// those that call it. It is complete from the beginning, and as it lives nowhere else, the
// Memory has it for the next start.
//
// The agent's own are, the highest first: localclient, priority 50, for programs in its
// process, and grpc, 40, for those that call it; both are above all stores.
//
// Requests are followed one after the other, each as one transaction. Methods may be
// called from any goroutine, but not from a verb.
type Local struct {
	ready   wake.Signal // set when there are requests
	stopped chan struct{}

	mu       sync.Mutex // guards requests
	requests []*request
}

// NewLocal returns a Local for Layer.Local.
func NewLocal() *Local {
	return &Local{ready: wake.New(), stopped: make(chan struct{})}
}

// A request is a change that somebody waits for.
type request struct {
	pairs   []kvdbsync.Pair
	replace bool
	refused []scheduler.KeyError

	done   chan struct{} // closed when what follows is set
	record *scheduler.Record
	err    error
}

// Apply puts the pairs that have a value, and deletes the others, and returns when
// that is done: with the transaction, which is nil where nothing of what holds changed,
// and a *scheduler.TxnError if values were refused or verbs failed. When ctx ends, a request that has not begun is taken back; one
// that has goes on, and nobody waits for it. Keys are relative to the agent's prefix.
func (l *Local) Apply(ctx context.Context, pairs []kvdbsync.Pair) (*scheduler.Record, error) {
	return l.do(ctx, &request{pairs: pairs, done: make(chan struct{})})
}

// Replace is Apply, but what is not among pairs is deleted.
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

// next takes the oldest request; nil: there is none.
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

// events are what a request changes in a layer; of a key that comes twice, the last.
func (r *request) events(l *layer) []kvdbsync.Event {
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

// serve follows the next request of a layer.
func (o *Orchestrator) serve(ctx context.Context, l *layer) {
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

// ErrNotRecorded is why a request is refused that the next start would not know.
var ErrNotRecorded = errors.New("the request is refused, as it cannot be recorded for the next start")

// record has the memory know what a request changes, before that is applied.
func (o *Orchestrator) record(l *layer, events []kvdbsync.Event) error {
	if o.memory == nil {
		return nil
	}
	decoded := o.decodeAll(len(events), func(i int) kvdbsync.Event { return events[i] })
	lessons := make([]lesson, len(events))
	for i := range events {
		events[i].Ahead = decoded[i]
		lessons[i] = l.learn(&events[i], decoded[i].err)
	}
	if err := o.memory.Record(all(lessons)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotRecorded, err)
	}
	return nil
}

// answer tells those who wait what became of their requests.
func (o *Orchestrator) answer(record *scheduler.Record, err error) {
	for _, r := range o.waiting {
		r.record, r.err = record, r.failure(err)
		close(r.done)
	}
	o.waiting = nil
}

// failure adds to the error of a transaction what was refused and is not in it, as
// another source counts more.
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

// stop ends the waiting of all, now and later.
func (o *Orchestrator) stop() {
	close(o.stopped)
	for _, l := range o.layers {
		if l.Local != nil {
			close(l.Local.stopped)
		}
	}
}
