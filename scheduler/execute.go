package scheduler

import (
	"context"
	"errors"
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
	// abandoned says that the verb has not returned. Then another task has its result later.
	abandoned bool
	leads     bool // the first of those that an abandoned verb was about
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
	if t.d.intercept == nil {
		t.err = t.verb(ctx)
		return
	}
	v := t.op.New
	if t.op.Verb == graph.Delete {
		v = t.op.Old
	}
	t.err = t.d.intercept(t.op.Node.Key(), v.Data.(proto.Message), func() error { return t.verb(ctx) })
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
// goroutines that live while there is work. A verb that was abandoned does not count.
type southbound struct {
	name     string
	limit    int
	timeout  time.Duration
	results  *results
	returned *results // of verbs that were abandoned, when they return at last

	mu      sync.Mutex // guards what follows
	queue   []*task
	workers map[*worker]struct{} // that take tasks from queue
	hung    map[*worker]struct{} // whose verbs were abandoned and still run
}

// A worker is a goroutine that calls verbs. Whoever abandons its verb takes its tasks away
// from it, and when the verb returns, the worker ends.
type worker struct {
	mu    sync.Mutex // guards what follows
	chunk []*task    // done, then running, then not begun
	done  int
	at    int // how many of chunk the verb that runs is about; 0: none runs
	begun time.Time
	left  bool // its verb was abandoned
}

func (b *southbound) push(ctx context.Context, t *task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, t)
	b.start(ctx)
}

// start starts a worker, if there may be more; mu is held.
func (b *southbound) start(ctx context.Context) {
	if len(b.workers) < b.limit {
		w := &worker{}
		b.workers[w] = struct{}{}
		go b.work(ctx, w)
	}
}

// work runs tasks until there are none. It takes several at once while verbs
// are so quick that handing tasks over would cost more than running them.
func (b *southbound) work(ctx context.Context, w *worker) {
	const quick, most = 5 * time.Microsecond, 64
	size := 1
	patience := b.patience(ctx)
	defer patience.end()
	for {
		chunk := b.pop(w, size)
		if chunk == nil {
			return
		}
		w.take(chunk)
		took, abandoned := b.run(ctx, &patience, w, chunk)
		if abandoned {
			return
		}
		if took < quick*time.Duration(len(chunk)) {
			size = min(2*size, most)
		} else {
			size = 1
		}
	}
}

// run runs tasks, and tells how long that took. abandoned: somebody else has taken those that
// were not begun and those that were done.
func (b *southbound) run(ctx context.Context, p *patience, w *worker, chunk []*task) (took time.Duration, abandoned bool) {
	begun := time.Now()
	start := begun
	if len(chunk) > 1 && alike(chunk) == len(chunk) && ctx.Err() == nil {
		w.begin(len(chunk), begun)
		done := createAll(p.at(begun), chunk)
		switch left := w.end(done); {
		case left && !done: // a Group refused to create them in one go, and took long for that
			for _, t := range chunk {
				t.err = errNotCalled
			}
			fallthrough
		case left:
			b.giveBack(w, chunk)
			return 0, true
		case done:
			b.results.add(chunk)
			return time.Since(start), false
		}
	}
	for i, t := range chunk {
		if t.skipped = ctx.Err() != nil; t.skipped {
			w.skip()
			continue
		}
		w.begin(1, begun)
		t.call(p.at(begun))
		ended := time.Now()
		t.took = max(1, ended.Sub(begun))
		begun = ended
		if w.end(true) {
			b.giveBack(w, chunk[i:i+1])
			return 0, true
		}
	}
	w.take(nil)
	b.results.add(chunk)
	return begun.Sub(start), false
}

var errNotCalled = errors.New("the verb was not called")

// take says that w runs chunk from now on.
func (w *worker) take(chunk []*task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chunk, w.done, w.at = chunk, 0, 0
}

// begin says that a verb begins, which is about the next n tasks.
func (w *worker) begin(n int, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.begun = n, now
}

// end says that the verb has returned, and returns whether it was abandoned before.
func (w *worker) end(done bool) (left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if done && !w.left {
		w.done += w.at
	}
	w.at = 0
	return w.left
}

// skip says that the next task is not to be run.
func (w *worker) skip() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done++
}

// giveBack hands over what became of tasks whose verb was abandoned.
func (b *southbound) giveBack(w *worker, tasks []*task) {
	b.mu.Lock()
	delete(b.hung, w)
	b.mu.Unlock()
	tasks[0].leads = true
	b.returned.add(tasks)
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
func (b *southbound) pop(w *worker, size int) []*task {
	b.mu.Lock()
	defer b.mu.Unlock()
	fair := (len(b.queue) + b.limit - 1) / b.limit
	if fair == 0 {
		delete(b.workers, w)
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

// take takes all results, once ready has said that there are some. Who is about to add some
// goes first, so that it is not woken for each.
func (r *results) take() []*task {
	runtime.Gosched()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.done
	r.done = nil
	return out
}
