package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// A queue holds the requests of programs until Run's goroutine takes them.
type queue struct {
	ready   wake.Signal   // set when there are requests
	stopped chan struct{} // closed when Run has ended

	mu       sync.Mutex // guards requests
	requests []*request
}

// newQueue returns a queue of requests that ends with the orchestrator.
func newQueue(stopped chan struct{}) *queue { return &queue{ready: wake.New(), stopped: stopped} }

// A request is a change whose caller waits for the result.
type request struct {
	layer   string           // the name of the layer; empty: the queue belongs to one source
	by      string           // Request.By
	forget  string           // instead of layer: an unconfigured source that is removed
	events  []kvdbsync.Event // in the order of the caller; the last one of a key counts
	replace bool
	revert  bool                                           // all or nothing
	allowed func(has func(key string) proto.Message) error // Request.If
	refused []scheduler.KeyError

	decided bool          // record and err are set, although the caller still waits
	done    chan struct{} // closed when the fields below are set
	record  *scheduler.Record
	err     error
}

// do hands a request to Run's goroutine and waits for the result.
func (q *queue) do(ctx context.Context, r *request) (*scheduler.Record, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	q.put(r)
	select {
	case <-r.done:
		return r.record, r.err
	case <-q.stopped:
		return nil, ErrStopped
	case <-ctx.Done():
		if q.withdraw(r) {
			return nil, fmt.Errorf("not begun: %w", ctx.Err())
		}
		return nil, fmt.Errorf("begun, and not done yet: %w", ctx.Err())
	}
}

// check refuses a request with an empty key: the scheduler would refuse each transaction of all keys.
func (r *request) check() error {
	for i := range r.events {
		if r.events[i].Key == "" {
			return fmt.Errorf("%w: the key of value %d is empty", scheduler.ErrMisuse, i+1)
		}
	}
	return nil
}

// put adds a request; the loop takes all of them at once.
func (q *queue) put(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = append(q.requests, r)
	q.ready.Set()
}

// withdraw removes a request that the loop has not taken, and reports whether it did. A
// taken one will be answered.
func (q *queue) withdraw(r *request) (waited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.requests, r)
	if i >= 0 {
		q.requests = slices.Delete(q.requests, i, i+1)
	}
	return i >= 0
}

// next takes the oldest request; nil: there is none, or it is all or nothing and such a one must
// still wait. It stays the oldest one then, and Run's goroutine is not woken for it.
func (q *queue) next(allOrNothing bool) *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.requests) == 0 || q.requests[0].revert && !allOrNothing {
		return nil
	}
	r := q.requests[0]
	if q.requests = q.requests[1:]; len(q.requests) > 0 {
		q.ready.Set()
	}
	return r
}

// changes returns the events of a request: the last one of each key, and the removals of a
// replacement.
func (r *request) changes(l *source) []kvdbsync.Event {
	named := make(map[string]bool, len(r.events))
	out := make([]kvdbsync.Event, 0, len(r.events))
	for _, e := range slices.Backward(r.events) {
		if !named[e.Key] {
			named[e.Key] = true
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	if r.replace {
		for _, e := range l.removeAll() {
			if !named[e.Key] {
				out = append(out, e)
			}
		}
	}
	return out
}

// serve processes a request for a source.
func (o *Orchestrator) serve(ctx context.Context, l *source, r *request) {
	events := r.changes(l)
	o.decodeRequest(r, events)
	if r.revert {
		o.attempt(ctx, l, r, events)
		return
	}
	if err := o.record(l, o.unsavedOf(l, events)); err != nil {
		o.finish(l, r, nil, err)
		return
	}
	changes, _ := o.merge(l, events)
	l.publish()
	o.dropEmpty(l)
	o.waiting = append(o.waiting, r)
	o.commit(ctx, l, r.description(l), changes, false)
}

// description returns the description of the transaction of a request for l.
func (r *request) description(l *source) string {
	return writer(l.Name, r.by, 0, 0)
}

// decodeRequest decodes the events of a request, and notes in it which are refused.
func (o *Orchestrator) decodeRequest(r *request, events []kvdbsync.Event) {
	decoded := o.decodeAll(len(events), func(i int) kvdbsync.Event { return events[i] })
	for i, d := range decoded {
		events[i].Decoded = d
		if d.err != nil {
			r.refused = append(r.refused, scheduler.KeyError{Key: events[i].Key, Verb: scheduler.Validate, Err: d.err})
		}
	}
}

// ErrNotRecorded is the error of a request that the next start would not know.
var ErrNotRecorded = errors.New("the request is refused because it cannot be saved for the next start")

// unsavedOf returns the changes of the Memory that events make, after those that it still lacks. It
// is called before the events are merged.
func (o *Orchestrator) unsavedOf(l *source, events []kvdbsync.Event) []unsavedEvent {
	if o.memory == nil || l.volatile {
		return nil
	}
	out := slices.Grow(slices.Clone(l.unrecorded), len(events))
	for i := range events {
		d, _ := events[i].Decoded.(decoded)
		out = append(out, l.unsavedEvent(&events[i], d))
	}
	return out
}

// record saves the changes of a request for l.
func (o *Orchestrator) record(l *source, unsaved []unsavedEvent) error {
	if len(unsaved) == 0 {
		return nil
	}
	if err := o.memory.Record(unsavedPairs(unsaved)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotRecorded, err)
	}
	l.unrecorded = nil
	return nil
}

// answer gives the result of a transaction to the waiting callers.
func (o *Orchestrator) answer(record *scheduler.Record, err error) {
	for _, r := range o.waiting {
		r.finish(record, err)
	}
	o.waiting = nil
}

// finish gives the result of a request for l to the caller.
func (o *Orchestrator) finish(l *source, r *request, record *scheduler.Record, err error) {
	o.dropEmpty(l)
	r.finish(record, err)
}

// finish gives the result to the caller.
func (r *request) finish(record *scheduler.Record, err error) {
	if !r.decided {
		r.record, r.err = record, r.failure(err)
	}
	close(r.done)
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
	told := make(map[string]bool, len(all.Failed))
	for _, k := range all.Failed {
		if k.Verb == scheduler.Validate {
			told[k.Key] = true
		}
	}
	for _, k := range r.refused {
		if !told[k.Key] {
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
