package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/mailbox"
	"github.com/keyplane/keyplane/internal/pulse"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/history"
	"github.com/keyplane/keyplane/scheduler/internal/idle"
	"github.com/keyplane/keyplane/scheduler/internal/inbox"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/memory"
	"github.com/keyplane/keyplane/scheduler/internal/published"
	"github.com/keyplane/keyplane/scheduler/internal/readback"
	"github.com/keyplane/keyplane/scheduler/internal/retry"
	"github.com/keyplane/keyplane/scheduler/internal/watch"
)

// Options configure a Scheduler. The zero value works.
type Options struct {
	Log *slog.Logger // Defaults to slog.Default
	// TransactionLog receives all transactions. Defaults to none. See package txnlog.
	TransactionLog TransactionLog
	// Concurrency is the maximum number of verbs of one connection that run at once. One
	// CreateAll counts as one. Defaults to 64.
	Concurrency int
	// Limits replaces Concurrency for single connections, by name.
	Limits map[string]int
	// VerbTimeout is the time after which the context of a verb, Retrieve or RetrieveSome
	// ends. A call that runs a tenth longer (at most 1 s) is abandoned; see ErrNoAnswer.
	// Defaults to 30 s.
	VerbTimeout time.Duration
	// Retry is the policy for failed values, unless the transaction that declares them has
	// its own. Defaults to the zero RetryPolicy.
	Retry RetryPolicy
	// Simulate plans every transaction, notification and retry before it is executed, and
	// records the plan.
	Simulate bool
	// Models are the models that Decode and the descriptors may have. Defaults to the
	// built-in ones.
	Models *models.Registry
	// FieldChecks returns the check of the fields of a model, one by one, which runs besides the
	// Validate of its descriptor. Its errors are FieldErrors. Defaults to none.
	FieldChecks func(*models.Model) func(proto.Message) error
	// Memory remembers applied values across restarts. Defaults to none.
	Memory Memory
	// Boot identifies the boot of the host: after another one, values that cannot be read back are assumed to be
	// gone, and without one at each start. Defaults to the kernel's boot id.
	Boot string
	// HistoryCount and HistoryBytes bound the history. HistoryBytes is an estimate of the
	// memory of the records, their values and texts. The oldest records are removed first;
	// the newest one is always kept. Default to 10,000 and 32 MiB.
	HistoryCount, HistoryBytes int
}

// A Scheduler reconciles a system with its desired state; see the package documentation.
type Scheduler struct {
	opts         Options
	log          *slog.Logger
	registry     kind.Registry
	decoder      *kind.Decoder
	executor     *executor.Executor
	statuses     *published.Table[published.Status]
	history      *history.History[*keptRecord]
	counters     *counters.Counters
	observations *mailbox.Box[Observed]
	outdated     map[string]bool // keys of observations that wait: verbs have ended since they came
	inbox        *inbox.Inbox[*Connection]
	watchers     *watch.Hub[*published.Status]
	connections  map[string]*Connection
	published    atomic.Pointer[[]ConnectionStatus] // by publishConnections
	begun        atomic.Bool                        // Run was called
	shown        published.Shown                    // Run's goroutine writes them
	requests     chan func(context.Context)
	idle         *idle.Runner // of plans
	stopped      chan struct{}
	pulse        pulse.Pulse // of Run's goroutine

	// Owned by Run's goroutine.
	graph   *graph.Graph
	seq     uint64
	ordered uint64 // number of operations with a verb that have begun
	retries *retry.Schedule
	flaps   *retry.Delays
	fault   error                 // the newest failure; see oneFault
	links   kind.Connections      // of all descriptors; those that can be lost are also in connections
	open    []*run                // runs that have not ended; they take turns
	driven  *run                  // the one that was driven last, until it has landed; nil: none
	since   time.Time             // when driven was first
	alone   func(context.Context) // begins a run when none is open; nil: nothing
	reader  *readback.Reader
	landing *time.Timer // for driven
	looked  time.Time   // when the graph was last asked to look for what comes last
	// completed has the outcomes of runs that have ended, which are not yet saved in the memory. Their callers do not
	// wait for that.
	completed []memory.Outcome

	ledger   *memory.Ledger
	together []*executor.Task
}

// New returns a Scheduler without descriptors. It does nothing before Run.
func New(opts Options) *Scheduler {
	opts.Log = cmp.Or(opts.Log, slog.Default())
	opts.Models = cmp.Or(opts.Models, models.BuiltIn())
	opts.Concurrency = cmp.Or(max(opts.Concurrency, 0), 64)
	opts.VerbTimeout = cmp.Or(max(opts.VerbTimeout, 0), 30*time.Second)
	opts.HistoryCount = cmp.Or(max(opts.HistoryCount, 0), 10_000)
	opts.HistoryBytes = cmp.Or(max(opts.HistoryBytes, 0), 32<<20)
	s := &Scheduler{
		opts: opts, log: opts.Log,
		executor:     executor.New(opts.VerbTimeout, opts.Log),
		statuses:     published.NewTable((*published.Status).Key),
		history:      history.New[*keptRecord](opts.HistoryCount, opts.HistoryBytes),
		observations: mailbox.New[Observed](), outdated: map[string]bool{},
		inbox:       inbox.New[*Connection](),
		watchers:    watch.NewHub((*published.Status).Key),
		connections: map[string]*Connection{},
		links:       kind.Connections{},
		counters:    counters.New(),
		requests:    make(chan func(context.Context)),
		stopped:     make(chan struct{}),
		graph:       graph.New(),
		retries:     retry.New(retry.Policy(opts.Retry)),
	}
	s.decoder = kind.NewDecoder(&s.registry, opts.Models)
	s.idle = &idle.Runner{Offers: make(chan *idle.Work), Ended: s.stopped, Err: ErrStopped}
	s.flaps = &retry.Delays{Graph: s.graph, Retries: s.retries, Log: opts.Log}
	s.graph.Keys = &s.registry
	s.ledger = s.newLedger()
	s.reader = s.newReader()
	return s
}

// Models returns the models that s can decode.
func (s *Scheduler) Models() *models.Registry { return s.opts.Models }

// Pulse tells whether the goroutine of Run is stuck: in a function of a descriptor, for example. A
// verb that hangs, and a pause, are waits.
func (s *Scheduler) Pulse() *pulse.Pulse { return &s.pulse }

// add registers d with the connection of this name. The verbs of all descriptors of one
// connection share a pool, and with it the limit of concurrency.
func (s *Scheduler) add(d *descriptor, name string) error {
	if s.begun.Load() {
		return tooLate("Register")
	}
	if err := s.registry.Add(d); err != nil {
		return err
	}
	s.counters.AddDescriptor(d.Name)
	name = cmp.Or(name, d.Name)
	d.Connection = s.links.Named(name)
	s.graph.Join(&d.Connection.Connection, &d.Known)
	limit := cmp.Or(max(s.opts.Limits[name], 0), s.opts.Concurrency)
	d.Connection.Pool, d.Connection.Limit = s.executor.Pool(name, limit), limit*waitingPerVerb
	if g := s.connections[name]; g != nil {
		d.Verbs.Intercept, d.Verbs.InterceptAll = g.intercept, g.interceptTasks()
		if g.intercept != nil && g.interceptAll == nil {
			d.Verbs.CreateAll = nil
		}
	}
	return nil
}

// waitingPerVerb is the number of operations that have begun for each verb of a connection that may run at once: so many that
// no goroutine of the pool runs out of work before others begin, and so few that those of another transaction come soon.
const waitingPerVerb = 16

// ErrStopped is returned by calls after Run has ended.
var ErrStopped = errors.New("the scheduler has stopped")

// Commit processes txn and waits until it has ended. The error is a *TxnError if verbs
// failed; the record has the details. Without a record, txn was not processed, or its
// outcome is unknown. When ctx ends, Commit stops waiting and the reading back ends. The
// rest of a transaction that has begun continues.
func (s *Scheduler) Commit(ctx context.Context, txn Txn) (*Record, error) {
	outcome := make(chan *Record, 1)
	if err := s.request(ctx, ctx.Done(), txn, func(rec *Record) { outcome <- rec }); err != nil {
		return nil, err
	}
	select {
	case rec := <-outcome:
		return rec, rec.Err()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the scheduler to end: %w", ctx.Err())
	}
}

// Start is Commit without waiting for the end: it returns when txn has begun. Transactions
// begin in the order of the calls. When txn has ended, ended is called with the result of
// Commit, on the goroutine of Run. So ended must not block, and must not call the methods
// that wait for the loop. It is called exactly once if Start returns no error, else never.
func (s *Scheduler) Start(ctx context.Context, txn Txn, ended func(*Record, error)) error {
	return s.request(ctx, ctx.Done(), txn, func(rec *Record) { ended(rec, rec.Err()) })
}

// Submit has txn processed and waits only until it begins. History and Status show its
// outcome.
func (s *Scheduler) Submit(ctx context.Context, txn Txn) error {
	return s.request(ctx, nil, txn, nil)
}

// request waits until txn begins. The other parameters are those of commit.
func (s *Scheduler) request(ctx context.Context, nobody <-chan struct{}, txn Txn, done func(*Record)) error {
	txn, err := s.checked(txn)
	if err != nil {
		return err
	}
	asked := time.Now()
	return s.ask(ctx, func(run context.Context) {
		s.counters.Waited(uint8(Northbound), asked)
		s.commit(run, nobody, txn, done)
	})
}

// ask waits until Run's goroutine begins do.
func (s *Scheduler) ask(ctx context.Context, do func(context.Context)) error {
	defer s.counters.Waits()()
	select {
	case s.requests <- do:
		return nil
	case <-s.stopped:
		return ErrStopped
	case <-ctx.Done():
		return fmt.Errorf("waiting for the scheduler to begin: %w", ctx.Err())
	}
}

// Run processes transactions, notifications and retries until ctx ends. Then it waits at
// most 5 s for running verbs. It can be called once. It fails at once with
// ErrMisuse if RetrieveAfter names a descriptor that is not registered.
func (s *Scheduler) Run(ctx context.Context) error {
	if s.begun.Swap(true) {
		return fmt.Errorf("%w: Run was called twice; a Scheduler runs once", ErrMisuse)
	}
	if err := s.registry.Sort(); err != nil {
		close(s.stopped)
		return err
	}
	var g errgroup.Group
	logging, endLog := context.WithCancel(context.WithoutCancel(ctx))
	defer endLog()
	if log := s.opts.TransactionLog; log != nil {
		g.Go(func() error { return log.Run(logging) })
	}
	s.loop(ctx)
	close(s.stopped)
	endLog()
	return g.Wait()
}

// loop does one piece of work after the other until ctx has ended and no run is open: it begins a run, or has one go on.
// Retries are work like any other, so the timer is set again before each wait.
func (s *Scheduler) loop(ctx context.Context) {
	s.landing = time.NewTimer(landAfter)
	defer s.landing.Stop()
	s.ledger.Load()
	s.publishConnections()
	s.handleInbox(ctx, s.inbox.Take()) // connections that are ready already are read back before the first transaction
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.rememberCompleted()
		ending, idle := ctx.Err() != nil, len(s.open) == 0
		switch do := s.alone; {
		case do != nil && idle:
			s.alone = nil
			do(ctx)
		case !idle && (ending || !s.mayBegin()):
			s.proceed(ctx)
		case ending:
			return
		case s.graph.Freed && len(s.open) < mostOpen:
			s.executeFreed(ctx)
		default:
			timer.Reset(s.retries.Wait(time.Now()))
			if do := s.next(ctx, timer.C); do != nil {
				s.land() // it looks at the graph before it begins a run
				do(ctx)
			}
		}
	}
}
