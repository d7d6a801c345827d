// Package executor calls verbs: concurrently, with time limits, and without waiting for verbs
// that hang.
//
// A [Pool] calls the verbs of one connection on a limited number of goroutines. They live
// while there is work; some of them wait for more until the context ends. [Executor.Await]
// returns finished tasks to the one goroutine that owns the executor.
//
// A verb that takes too long is abandoned: Await returns its tasks with ErrNoAnswer, and its
// goroutine no longer counts. When the verb returns, its tasks have their results and become
// late results:
//
//	queued -> running -> finished              Await
//	              \----> abandoned             Await, with ErrNoAnswer
//	                         \----> returned   TakeLate
//
// A descriptor with too many abandoned verbs is stalled: none of its verbs begins.
//
// [Read] has the same rules for calls that read back the actual state.
package executor

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// Verbs are the verbs of one descriptor. The zero value has none.
type Verbs struct {
	Descriptor string // name
	Create     func(ctx context.Context, key string, v proto.Message) (any, error)
	Update     func(ctx context.Context, key string, old, new proto.Message, meta any) (any, error)
	Delete     func(ctx context.Context, key string, v proto.Message, meta any) error
	// CreateAll creates the new values of tasks, and sets Meta and Err of each. Optional.
	CreateAll func(ctx context.Context, tasks []*Task)

	// Intercept wraps each verb; nil: none.
	Intercept func(key string, value proto.Message, verb func() error) error
	// InterceptAll wraps CreateAll; nil: none. It returns false to have the verbs called one
	// by one.
	InterceptAll func(tasks []*Task, verbs func() []error) bool

	hung int // abandoned verbs that are still running; owned by the executor's goroutine
}

// Hung returns the number of abandoned verbs that are still running. Only the goroutine of
// the executor may call it.
func (v *Verbs) Hung() int { return v.hung }

// A Task is an operation with its verb and, after Await or TakeLate, its result.
type Task struct {
	Op    graph.Op
	Verbs *Verbs
	Index int    // for the caller
	Order uint64 // for the caller
	Owner any    // for the caller
	// Generation is for the caller.
	Generation uint8
	// Withheld returns why the verb may not begin; nil: it may. It is called with Root, on any goroutine, when the
	// verb would begin. nil: it may always begin.
	Withheld func(root string) error
	Root     string // the key from whose value the one of Op is derived

	Ended     bool          // for the caller
	Took      time.Duration // 0: no verb was called
	Abandoned bool          // the verb has not returned
	Skipped   bool          // the verb was not called because the context had ended
	Meta      any
	Err       error

	first bool // the first task of an abandoned verb
}

// WhyNot returns the reason why the verb may not begin; nil: it may.
func (t *Task) WhyNot() error {
	if t.Withheld == nil {
		return nil
	}
	if why := t.Withheld(t.Root); why != nil {
		return fmt.Errorf("%w: %w", ErrWithheld, why)
	}
	return nil
}

// Report tells g how the operation ended, or that it was abandoned. A verb that did not begin
// says nothing about its value.
func (t *Task) Report(g *graph.Graph) {
	switch {
	case t.Abandoned:
		g.Abandon(t.Op, t.Err)
	case NotBegun(t.Err):
		g.Postpone(t.Op, t.Err)
	default:
		g.Done(t.Op, t.Meta, t.Err)
	}
}

// An Executor has the pools of all connections. All methods but Running are for one
// goroutine.
type Executor struct {
	timeout time.Duration
	// abandonAfter is the time after which a verb is abandoned.
	abandonAfter time.Duration
	log          *slog.Logger
	pools        map[string]*Pool
	finished     *results
	late         *results
	watchdog     watchdog
}

// New returns an Executor. timeout limits each verb.
func New(timeout time.Duration, log *slog.Logger) *Executor {
	return &Executor{timeout: timeout, abandonAfter: timeout + grace(timeout), log: log, pools: map[string]*Pool{}, finished: newResults(), late: newResults()}
}

// Has reports whether the connection has a pool.
func (e *Executor) Has(connection string) bool { return e.pools[connection] != nil }

// Pool returns the pool of a connection. The first call makes it with the limit of
// concurrent verbs.
func (e *Executor) Pool(connection string, limit int) *Pool {
	p := e.pools[connection]
	if p == nil {
		p = &Pool{
			Connection: connection, limit: limit, timeout: e.timeout, finished: e.finished, late: e.late,
			workers: map[*worker]struct{}{}, hung: map[*worker]struct{}{},
		}
		e.pools[connection] = p
	}
	return p
}

// Push gives tasks to their pools, and has overdue verbs abandoned: the caller may not wait for
// them with Await.
func (e *Executor) Push(ctx context.Context, tasks []*Task, pool func(*Task) *Pool) {
	for first := 0; first < len(tasks); {
		e.Watch()
		of, after := pool(tasks[first]), first+1
		for after < len(tasks) && pool(tasks[after]) == of {
			after++
		}
		of.Push(ctx, tasks[first:after]...)
		first = after
	}
}

// Finished has a token while there are finished tasks.
func (e *Executor) Finished() <-chan struct{} { return e.finished.ready.C() }

// TakeFinished returns the tasks that have finished since the last call.
func (e *Executor) TakeFinished() []*Task { return e.finished.take() }

// Overdue fires when TakeOverdue should be called, after Watch.
func (e *Executor) Overdue() <-chan time.Time {
	if !e.watchdog.set {
		return nil
	}
	return e.watchdog.timer.C
}

// TakeOverdue abandons overdue verbs and returns their tasks, and others that fail because
// of them.
func (e *Executor) TakeOverdue(ctx context.Context) []*Task {
	e.watchdog.set = false
	return e.abandonOverdue(ctx)
}

// Late has a token while there are late results.
func (e *Executor) Late() <-chan struct{} { return e.late.ready.C() }

// TakeLate returns the tasks of abandoned verbs that have returned since.
func (e *Executor) TakeLate() []*Task {
	tasks := e.late.take()
	for _, t := range tasks {
		if t.first {
			t.Verbs.hung--
		}
	}
	return tasks
}

// A Running is a verb that is running.
type Running struct {
	Verb      value.Verb
	Since     time.Time
	Abandoned bool
}

// Running returns the running verb of key, if there is one. Any goroutine may call it after
// all pools are made.
func (e *Executor) Running(key string) (Running, bool) {
	for _, p := range e.pools {
		if r, ok := p.running(key); ok {
			return r, true
		}
	}
	return Running{}, false
}

// running returns the running verb of key, if one of the workers of the pool calls it.
func (p *Pool) running(key string) (Running, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.workers {
		if r, ok := w.running(key); ok {
			return r, true
		}
	}
	for w := range p.hung {
		if r, ok := w.running(key); ok {
			r.Abandoned = true
			return r, true
		}
	}
	return Running{}, false
}

// running returns the verb that w calls now, if it is one of key. A worker with a batch
// calls it for all of its tasks at once.
func (w *worker) running(key string) (Running, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.chunk[w.done : w.done+w.active] {
		if t.Op.Node.Key() == key {
			return Running{Verb: t.Op.Verb, Since: w.begun}, true
		}
	}
	return Running{}, false
}

// A sharedTimeout makes contexts for successive verbs. Verbs share a context while at least
// nine tenths of the timeout are left, because a context per verb would cost more than a fast verb.
type sharedTimeout struct {
	parent  context.Context
	timeout time.Duration
	current context.Context
	begun   time.Time
	cancel  context.CancelFunc
}

// contextAt returns the context of a verb that begins now.
func (s *sharedTimeout) contextAt(now time.Time) context.Context {
	if s.current == nil || now.Sub(s.begun) > s.timeout/10 {
		s.end()
		s.begun = now
		s.current, s.cancel = context.WithTimeout(s.parent, s.timeout)
	}
	return s.current
}

func (s *sharedTimeout) end() { s.cancel() }

// Operations yields the operations of tasks.
func Operations(tasks []*Task) iter.Seq[graph.Op] {
	return func(yield func(graph.Op) bool) {
		for _, t := range tasks {
			if !yield(t.Op) {
				return
			}
		}
	}
}
