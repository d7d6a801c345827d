package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/internal/mailbox"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/table"
)

// Options are those of a Scheduler; the zero value works.
type Options struct {
	Log *slog.Logger // Defaults to slog.Default
	// Out gets the text of each transaction. What it is too slow for is left out; Stats
	// counts that. Defaults to nowhere.
	Out io.Writer
	// PrintLimit is how many values and operations of one transaction are
	// written to Out, before counts take over. Defaults to 50; negative: all.
	PrintLimit int
	// Concurrency is how many verbs of one southbound may run at once; a CreateAll is one.
	// Defaults to 64.
	Concurrency int
	// Limits are other limits than Concurrency, by name of a southbound.
	Limits map[string]int
	// VerbTimeout is when the context of a verb, of Retrieve and of RetrieveSome ends. A call
	// that goes on for a tenth longer (at most 1 s) is abandoned: see ErrNoAnswer. Defaults to 30 s.
	VerbTimeout time.Duration
	// Retry is how values that fail are tried again, unless the transaction that declared them says
	// otherwise. Defaults to that of the zero Retry.
	Retry RetryPolicy
	// Simulate plans every transaction, notification and retry before it is executed, for the
	// record. The plan is written to Out before the first verb is called, unless Out takes
	// more than a second; Stats counts that.
	Simulate bool
	// Memory remembers across restarts what was applied. Defaults to none.
	Memory Memory
	// HistoryCount and HistoryBytes (an estimate of the memory that the records hold, with
	// values and texts) bound the history; what exceeds either goes, oldest first. The newest
	// record is kept in any case. Default to 10,000 and 256 MiB.
	HistoryCount, HistoryBytes int
}

// A Scheduler keeps a system as declared; see the package documentation.
type Scheduler struct {
	opts         Options
	log          *slog.Logger
	registry     registry
	bounds       map[string]*southbound
	results      *results
	lates        *results // of abandoned verbs
	statuses     *table.Table[Status]
	history      history
	stats        stats
	observations *mailbox.Box[Observed]
	inbox        *inbox
	watchers     watchers
	connections  map[string]*Connection
	begun        atomic.Bool // Run was called
	printer      *printer
	requests     chan func(context.Context)
	stopped      chan struct{}

	// Owned by Run's goroutine.
	graph    *graph.Graph
	seq      uint64
	retries  retries
	watchdog watchdog
	// vanished are the keys that were found gone by the run under way.
	vanished []string
	contests contests
	// completed are the runs that the memory is still to be told of: who waits for one
	// does not wait for that.
	completed []*run

	remembered remembered
	notes      []note // room for those that are just being made
	together   []*task
}

// New returns a Scheduler that knows no descriptors and does nothing before Run.
func New(opts Options) *Scheduler {
	opts.Log = cmp.Or(opts.Log, slog.Default())
	opts.PrintLimit = cmp.Or(opts.PrintLimit, 50)
	opts.Concurrency = positive(opts.Concurrency, 64)
	opts.VerbTimeout = positive(opts.VerbTimeout, 30*time.Second)
	opts.HistoryCount = positive(opts.HistoryCount, 10_000)
	opts.HistoryBytes = positive(opts.HistoryBytes, 256<<20)
	return &Scheduler{
		opts: opts, log: opts.Log,
		bounds:       map[string]*southbound{},
		results:      newResults(),
		lates:        newResults(),
		statuses:     table.New(func(st *Status) string { return st.Key }),
		history:      history{maxCount: opts.HistoryCount, maxBytes: opts.HistoryBytes},
		observations: mailbox.New[Observed](),
		inbox:        newInbox(),
		printer:      newPrinter(opts.Out, opts.PrintLimit, opts.Log),
		connections:  map[string]*Connection{},
		stats:        stats{verbs: map[*descriptor]*[4]Timing{}},
		requests:     make(chan func(context.Context)),
		stopped:      make(chan struct{}),
		graph:        graph.New(),
		retries:      retries{byKey: map[string]*retry{}},
	}
}

// positive is n, or what it defaults to.
func positive[N int | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}

func (s *Scheduler) add(d *descriptor, name string) error {
	if s.begun.Load() {
		return fmt.Errorf("%w: Register comes before it", ErrRunning)
	}
	if err := s.registry.add(d); err != nil {
		return err
	}
	name = cmp.Or(name, d.name)
	if s.bounds[name] == nil {
		s.bounds[name] = &southbound{
			name:    name,
			limit:   positive(s.opts.Limits[name], s.opts.Concurrency),
			timeout: s.opts.VerbTimeout,
			results: s.results, returned: s.lates,
			workers: map[*worker]struct{}{}, hung: map[*worker]struct{}{},
		}
	}
	d.southbound = s.bounds[name]
	if g := s.connections[name]; g != nil {
		d.link, d.intercept, d.interceptAll = &g.link, g.intercept, g.interceptAll
		if g.intercept != nil && g.interceptAll == nil {
			d.createAll = nil
		}
	}
	return nil
}

// ErrStopped is what Commit returns once Run has ended.
var ErrStopped = errors.New("the scheduler has stopped")

// Commit has txn processed and waits for the end of it. The error is a
// *TxnError if verbs failed; the record says all. Without a record txn was not
// processed, or it is not known whether it was. When ctx ends, Commit stops
// waiting and the reading back ends, but the rest of a transaction that has
// begun goes on.
func (s *Scheduler) Commit(ctx context.Context, txn Txn) (*Record, error) {
	if err := s.check(txn); err != nil {
		return nil, err
	}
	var rec *Record
	if err := s.runInLoop(ctx, func(run context.Context) { rec = s.commit(run, ctx.Done(), txn) }); err != nil {
		return nil, err
	}
	return rec, rec.Err()
}

// Submit has txn processed and waits only until it begins. The history and the
// status of its values say what became of it.
func (s *Scheduler) Submit(ctx context.Context, txn Txn) error {
	if err := s.check(txn); err != nil {
		return err
	}
	select {
	case s.requests <- func(ctx context.Context) { s.commit(ctx, nil, txn) }:
		return nil
	case <-s.stopped:
		return ErrStopped
	case <-ctx.Done():
		return fmt.Errorf("waiting for the transaction to begin: %w", ctx.Err())
	}
}

// ask has Run's goroutine do something, and waits for the end of it.
func (s *Scheduler) runInLoop(ctx context.Context, do func(context.Context)) error {
	done := make(chan struct{})
	select {
	case s.requests <- func(ctx context.Context) { do(ctx); close(done) }:
	case <-s.stopped:
		return ErrStopped
	case <-ctx.Done():
		return fmt.Errorf("waiting for the scheduler to begin: %w", ctx.Err())
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the scheduler to end: %w", ctx.Err())
	}
}

// Run processes transactions, notifications and retries until ctx ends. What
// verbs have begun then is waited for, for 5 s at most. It can be called once: see ErrRunning. It fails
// at once with ErrUnknownDescriptor if a descriptor is to be retrieved after one that is
// not registered.
func (s *Scheduler) Run(ctx context.Context) error {
	if s.begun.Swap(true) {
		return fmt.Errorf("%w: a Scheduler runs once", ErrRunning)
	}
	if err := s.registry.sort(); err != nil {
		close(s.stopped)
		return err
	}
	var g errgroup.Group
	printing := make(chan struct{})
	g.Go(func() error { return s.printer.run(printing) })
	s.loop(ctx)
	close(s.stopped)
	close(printing)
	return g.Wait()
}

func (s *Scheduler) loop(ctx context.Context) {
	s.recall(ctx)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.rememberAll()
		timer.Reset(s.retries.wait())
		select {
		case <-ctx.Done():
			return
		case do := <-s.requests:
			do(ctx)
		case <-s.observations.Ready():
			s.handleObservations(ctx, s.changedObservations(s.observations.Take()))
		case <-s.inbox.ready.C():
			s.handleInbox(ctx, s.inbox.drain())
		case <-s.lates.ready:
			s.handleLateResults(ctx, s.lates.take())
		case <-timer.C:
			s.retryDue(ctx)
		}
	}
}
