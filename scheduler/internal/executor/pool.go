package executor

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// call runs the task's verb.
func (t *Task) call(ctx context.Context) {
	t.Err = guard.Detailed(func() error {
		if t.Verbs.Intercept == nil {
			return t.verb(ctx)
		}
		v := t.Op.New
		if t.Op.Verb == value.Delete {
			v = t.Op.Old
		}
		return t.Verbs.Intercept(t.Op.Node.Key(), v.Data.(proto.Message), func() error { return t.verb(ctx) })
	})
}

// verb calls the verb of the operation. A panic of it reaches the caller.
func (t *Task) verb(ctx context.Context) (err error) {
	key := t.Op.Node.Key()
	switch t.Op.Verb {
	case value.Create:
		t.Meta, err = t.Verbs.Create(ctx, key, t.Op.New.Data.(proto.Message))
	case value.Update:
		t.Meta, err = t.Verbs.Update(ctx, key, t.Op.Old.Data.(proto.Message), t.Op.New.Data.(proto.Message), t.Op.Meta)
	case value.Delete:
		err = t.Verbs.Delete(ctx, key, t.Op.Old.Data.(proto.Message), t.Op.Meta)
	case value.None: // the graph returns no such operation
	}
	return err
}

// A Pool calls the verbs of one connection. It runs up to limit of them at once. Abandoned
// verbs do not count.
type Pool struct {
	Connection string // name
	limit      int
	timeout    time.Duration
	finished   *results
	late       *results // of abandoned verbs that have returned

	mu      sync.Mutex // guards the fields below
	queue   []*Task
	workers map[*worker]struct{} // they take tasks from queue
	resting []*worker            // they wait until they are among workers again
	hung    map[*worker]struct{} // their abandoned verbs are still running
}

// A worker is a goroutine that calls verbs. When its verb is abandoned, it loses its tasks;
// when the verb returns, the worker ends.
type worker struct {
	wake chan struct{} // has a token when the worker has work again

	mu        sync.Mutex // guards the fields below
	chunk     []*Task    // done, then running, then waiting
	done      int
	active    int // number of tasks of the running verb; 0: none runs
	begun     time.Time
	abandoned bool
}

// Push queues tasks.
func (p *Pool) Push(ctx context.Context, tasks ...*Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, tasks...)
	for range min(len(tasks), p.limit-len(p.workers)) {
		p.start(ctx)
	}
}

// start starts a worker if the limit allows it. The caller holds mu.
func (p *Pool) start(ctx context.Context) {
	if len(p.workers) >= p.limit {
		return
	}
	if last := len(p.resting) - 1; last >= 0 {
		w := p.resting[last]
		p.resting = p.resting[:last]
		p.workers[w] = struct{}{}
		w.wake <- struct{}{}
		return
	}
	w := &worker{wake: make(chan struct{}, 1)}
	p.workers[w] = struct{}{}
	go p.work(ctx, w)
}

// mostResting is the maximum number of workers that wait for work. A new worker needs a new
// stack and more time than a fast verb.
const mostResting = 8

// rest waits until w has work again. It returns false if w has to end, because enough others
// rest or ctx has ended.
func (p *Pool) rest(ctx context.Context, w *worker) bool {
	p.mu.Lock()
	rests := len(p.resting) < mostResting
	if rests {
		p.resting = append(p.resting, w)
	}
	p.mu.Unlock()
	if !rests {
		return false
	}
	select {
	case <-w.wake:
		return true
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.resting, w); at >= 0 {
		p.resting = slices.Delete(p.resting, at, at+1)
		return false
	}
	<-w.wake // start was faster
	return true
}

// work runs tasks. It takes several at once while verbs are so fast that passing tasks would
// cost more than running them.
func (p *Pool) work(ctx context.Context, w *worker) {
	const quick, most = 5 * time.Microsecond, 64
	size := 1
	limit := sharedTimeout{parent: ctx, timeout: p.timeout, cancel: func() {}}
	defer limit.end()
	for {
		chunk := p.pop(w, size)
		if chunk == nil {
			w.assign(nil) // its last tasks are free
			if !p.rest(ctx, w) {
				return
			}
			size = 1
			continue
		}
		w.assign(chunk)
		took, abandoned := p.run(ctx, &limit, w, chunk)
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

// run runs tasks and returns the time that they took. abandoned means that a verb was
// abandoned: then another goroutine has taken the finished and the waiting tasks.
func (p *Pool) run(ctx context.Context, limit *sharedTimeout, w *worker, chunk []*Task) (took time.Duration, abandoned bool) {
	begun := time.Now()
	start := begun
	withheld := func(t *Task) bool { return t.WhyNot() != nil }
	if len(chunk) > 1 && sameCreateAll(chunk) == len(chunk) && ctx.Err() == nil && !slices.ContainsFunc(chunk, withheld) {
		w.begin(len(chunk), begun)
		done := createAll(limit.contextAt(begun), chunk)
		abandoned := w.end(done)
		if abandoned && !done { // InterceptAll refused, but too late
			for _, t := range chunk {
				t.Err = errNotCalled
			}
		}
		if abandoned {
			p.returnLate(w, chunk)
			return 0, true
		}
		if done {
			p.finished.add(chunk)
			return time.Since(start), false
		}
	}
	for i, t := range chunk {
		t.Skipped = ctx.Err() != nil
		if !t.Skipped {
			t.Err = t.WhyNot()
		}
		if t.Skipped || t.Err != nil {
			w.skip()
			continue
		}
		w.begin(1, begun)
		t.call(limit.contextAt(begun))
		ended := time.Now()
		t.Took = max(1, ended.Sub(begun))
		begun = ended
		if w.end(true) {
			p.returnLate(w, chunk[i:i+1])
			return 0, true
		}
	}
	w.assign(nil)
	p.finished.add(chunk)
	return begun.Sub(start), false
}

var errNotCalled = errors.New("the verb was not called")

// assign gives w the next tasks.
func (w *worker) assign(chunk []*Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chunk, w.done, w.active = chunk, 0, 0
}

// begin records that a verb for the next n tasks begins.
func (w *worker) begin(n int, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active, w.begun = n, now
}

// end records that the verb has returned, and reports whether it was abandoned.
func (w *worker) end(done bool) (abandoned bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if done && !w.abandoned {
		w.done += w.active
	}
	w.active = 0
	return w.abandoned
}

// skip records that the next task is not run.
func (w *worker) skip() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done++
}

// returnLate passes on the results of an abandoned verb.
func (p *Pool) returnLate(w *worker, tasks []*Task) {
	p.mu.Lock()
	delete(p.hung, w)
	p.mu.Unlock()
	tasks[0].first = true
	p.late.add(tasks)
}

// pop takes up to size tasks, but leaves some for the other workers. If there is none, it takes w
// out of the workers.
func (p *Pool) pop(w *worker, size int) []*Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	fair := (len(p.queue) + p.limit - 1) / p.limit
	if fair == 0 {
		delete(p.workers, w)
		p.queue = nil
		return nil
	}
	size = max(min(size, fair), sameCreateAll(p.queue[:min(fair, maxCreateAll)]))
	chunk := p.queue[:size:size]
	p.queue = p.queue[size:]
	return chunk
}

// results collects tasks with results.
type results struct {
	mu    sync.Mutex
	done  []*Task
	ready wake.Signal // set while done is not empty
}

func newResults() *results { return &results{ready: wake.New()} }

// add makes results available to the scheduler's goroutine, in the order in which the
// verbs ended.
func (r *results) add(tasks []*Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, tasks...)
	r.ready.Set()
}

// take takes all results after ready was set. It yields first, so that it is not woken
// for each single result.
func (r *results) take() []*Task {
	runtime.Gosched()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.done
	r.done = nil
	return out
}
