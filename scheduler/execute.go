package scheduler

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A task is an operation on its way to a southbound and back.
type task struct {
	op    graph.Op
	d     *descriptor
	index int // of its record
	took  time.Duration
	// skipped says that the verb was not called: the scheduler stopped before.
	skipped bool
	meta    any
	err     error
}

// call runs the task's verb.
func (t *task) call(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			t.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if t.d.around == nil {
		t.err = t.verb(ctx)
		return
	}
	v := t.op.New
	if t.op.Verb == graph.Delete {
		v = t.op.Old
	}
	t.err = t.d.around(t.op.Node.Key(), v.Data.(proto.Message), func() error { return t.verb(ctx) })
}

func (t *task) verb(ctx context.Context) (err error) {
	key := t.op.Node.Key()
	switch t.op.Verb {
	case graph.Create:
		t.meta, err = t.d.create(ctx, key, t.op.New.Data.(proto.Message))
	case graph.Update:
		t.meta, err = t.d.update(ctx, key, t.op.Old.Data.(proto.Message), t.op.New.Data.(proto.Message), t.op.Meta)
	case graph.Delete:
		err = t.d.delete(ctx, key, t.op.Old.Data.(proto.Message), t.op.Meta)
	}
	return err
}

// A southbound is what verbs talk to. It runs up to limit of them at once, on
// goroutines that live while there is work.
type southbound struct {
	name    string
	limit   int
	timeout time.Duration
	results *results

	mu      sync.Mutex
	queue   []*task
	workers int
}

func (b *southbound) push(ctx context.Context, t *task) {
	b.mu.Lock()
	b.queue = append(b.queue, t)
	start := b.workers < b.limit
	if start {
		b.workers++
	}
	b.mu.Unlock()
	if start {
		go b.work(ctx)
	}
}

// work runs tasks until there are none. It takes several at once while verbs
// are so quick that handing tasks over would cost more than running them.
func (b *southbound) work(ctx context.Context) {
	const quick, most = 5 * time.Microsecond, 64
	size := 1
	patience := b.patience(ctx)
	defer patience.end()
	for {
		chunk := b.pop(size)
		if chunk == nil {
			return
		}
		if b.run(ctx, &patience, chunk) < quick*time.Duration(len(chunk)) {
			size = min(2*size, most)
		} else {
			size = 1
		}
	}
}

// run runs tasks, and tells how long that took.
func (b *southbound) run(ctx context.Context, p *patience, chunk []*task) time.Duration {
	begun := time.Now()
	start := begun
	if len(chunk) > 1 && alike(chunk) == len(chunk) && ctx.Err() == nil && createAll(p.at(begun), chunk) {
		b.results.add(chunk)
		return time.Since(start)
	}
	for _, t := range chunk {
		if t.skipped = ctx.Err() != nil; t.skipped {
			continue
		}
		t.call(p.at(begun))
		ended := time.Now()
		t.took = max(1, ended.Sub(begun))
		begun = ended
	}
	b.results.add(chunk)
	return begun.Sub(start)
}

// patience is a context for one verb after the other, of which each has at least half
// of the time that a verb may take.
type patience struct {
	parent context.Context
	least  time.Duration
	now    context.Context
	begun  time.Time
	cancel context.CancelFunc
}

func (b *southbound) patience(ctx context.Context) patience {
	return patience{parent: ctx, least: b.timeout / 2, cancel: func() {}}
}

// at is the context of a verb that begins now.
func (p *patience) at(now time.Time) context.Context {
	if p.now == nil || now.Sub(p.begun) > p.least {
		p.end()
		p.begun = now
		p.now, p.cancel = context.WithTimeout(p.parent, 2*p.least)
	}
	return p.now
}

func (p *patience) end() { p.cancel() }

// pop takes up to size tasks, but leaves some for the other workers; none: the
// worker ends.
func (b *southbound) pop(size int) []*task {
	b.mu.Lock()
	defer b.mu.Unlock()
	fair := (len(b.queue) + b.limit - 1) / b.limit
	if fair == 0 {
		b.workers--
		b.queue = nil
		return nil
	}
	size = max(min(size, fair), alike(b.queue[:min(fair, mostAlike)]))
	chunk := b.queue[:size:size]
	b.queue = b.queue[size:]
	return chunk
}

// results collects tasks that have been run.
type results struct {
	mu    sync.Mutex
	done  []*task
	ready chan struct{} // holds a token while done is not empty
}

func newResults() *results { return &results{ready: make(chan struct{}, 1)} }

func (r *results) add(tasks []*task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, tasks...)
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// take waits until there are results, and takes all. Who is about to add some goes
// first, so that it is not woken for each.
func (r *results) take() []*task {
	<-r.ready
	runtime.Gosched()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.done
	r.done = nil
	return out
}
