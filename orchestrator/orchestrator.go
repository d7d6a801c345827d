// Package orchestrator merges the values of several sources into one desired state and
// commits it to the scheduler. It is the only package that turns bytes into typed values.
//
//	o := orchestrator.New(sched, orchestrator.Options{Sources: []orchestrator.Source{
//		{Name: "etcd", Priority: 20, Feed: etcdSource},
//		{Name: "filedb", Priority: 10, Feed: fileSource},
//	}})
//	err := o.Run(ctx)
//
// # Merging
//
// The source with the highest priority that has a valid value for a key takes effect.
// Deleting the key there makes the next source effective. So the same content gives the
// same result, in whatever order it arrived. All changes that a source made together are
// one transaction.
//
// A value is refused if it does not parse, does not belong under its key, or is invalid
// for its descriptor. Its key is INVALID with the reason, the last valid value of that
// source stays in effect, and all other keys proceed. A key without a descriptor is
// UNIMPLEMENTED.
//
// # Phases
//
//	phase      begins when                                          a transaction then
//	starting   Run begins                                           waits: sources may be complete soon
//	ready      the patience has ended, nothing was committed yet    reads the system back first, and has all keys
//	partial    something was committed                              has the keys that changed; removals are deferred
//	known      each source has delivered a complete listing, or     makes the deferred removals
//	           another agent has the label in its store
//	pruned     each has, and none has a problem that may hide keys  replaces the whole state once: undeclared values go
//
// Without any source the phase stays ready until a program declares the first layer: nothing
// says yet which actual values are still desired. An all-or-nothing request that fails changes no
// phase. A phase never ends before the next one begins, and phases may be skipped.
//
// # Removals
//
// A removal that a store reports is followed at once. A key that is only missing from a
// listing may not have been deleted. If the listing is not credible, its missing keys are
// in doubt: they stay until a listing that begins after the grace time decides. See
// doubt.go.
//
// # Restarts
//
// A [Memory] keeps the content of each source. It learns a change before the change is
// applied. So a kill at any moment brings back neither an older value nor a removed one.
// If a source is not complete when the patience ends, its saved content is used until its
// first complete listing. Keys that this listing lacks are removed by the rules above. The
// last valid value of a key survives restarts too. A Memory that missed changes is not
// used for sources: actual values stay until their sources are complete. A source that the
// Memory has and Options.Sources lacks keeps its values until Forget: its configuration may
// be missing by mistake.
//
// # Programs
//
// Values that programs declare, by gRPC, REST or in the process, are a source too: a layer,
// which the program names. [Orchestrator.Declare] returns the result of each request. A layer
// has no other store, so a request that the Memory cannot record is refused. A [Local] is a
// source of this kind that exists from the start.
//
// # Ownership
//
// Run's goroutine owns all state. A large change of a source is decoded on other goroutines
// first, so that the other sources do not wait for it. [Orchestrator.Health] reads a snapshot.
// [Orchestrator.Declarations] asks that goroutine. A program may bring its own
// [Committer]. Tests drive the package with feeds made of channels, in virtual time.
// Random tests check that the result depends neither on the order of arrival nor on
// restarts.
package orchestrator

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/internal/pulse"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// A Feed delivers the content of a source; *kvdbsync.Source is one. Its keys are relative
// to the prefix of the agent.
type Feed interface {
	// Ready has a token whenever Take has something.
	Ready() <-chan struct{}
	// Take returns the changes since the last call; false: there are none.
	Take() (kvdbsync.Change, bool)
}

// A Source is one source of desired values.
type Source struct {
	Name     string // unique
	Priority int    // the highest takes effect; equal priorities are ordered by name
	Feed     Feed
	Local    *Local // instead of Feed: values that programs declare
}

// A Committer applies transactions; *scheduler.Scheduler is one. A program may bring its own,
// for example one that checks or counts transactions and embeds a *scheduler.Scheduler.
//
// Models are the models of Decode, which returns the value of a key from its bytes. Value is
// Decode for a value that is parsed already. Both are called on several goroutines at once.
// Their errors decide the state of the key:
//
//	nil                                the value is declared in the next transaction
//	errors.Is(scheduler.ErrUnimplemented)    UNIMPLEMENTED: no part of the program can apply the key
//	any other error                    INVALID: the last valid value stays
//
// In both cases of an error the next transaction has a Change with this error, so that its
// record and the status of the key show it. A panic of Decode counts as an error.
//
// Commit returns a record if the transaction was processed, even if operations failed. Without
// a record the orchestrator does not know its outcome. Start returns when the transaction has
// begun, in the order of the calls; ended gets the result of Commit later, exactly once, on
// another goroutine, and does not block.
type Committer interface {
	Models() *models.Registry
	Decode(key string, data []byte) (scheduler.Value, error)
	Value(key string, message proto.Message) (scheduler.Value, error)
	Commit(ctx context.Context, txn scheduler.Txn) (*scheduler.Record, error)
	Start(ctx context.Context, txn scheduler.Txn, ended func(*scheduler.Record, error)) error
}

// Options are the options of an Orchestrator.
type Options struct {
	Sources []Source
	Layers  LayerOptions
	Retry   scheduler.RetryPolicy
	// Patience is how long the first transaction waits for complete listings of all
	// sources. A source with saved content that is connecting or listing gets 3 s.
	// Defaults to 100 ms.
	Patience time.Duration
	// Grace is how long keys in doubt stay at least; a listing that begins later decides.
	// Defaults to 10 s.
	Grace time.Duration
	// A listing is not credible if at least GraceKeys keys and GracePercent of the keys of
	// the source are missing from it at once. Nor is an empty listing, or a listing of
	// another dataset. Default to 33 and 5.
	GracePercent, GraceKeys int
	// Memory keeps the content of sources across restarts. Defaults to none.
	Memory Memory
	// Unconfigured returns the priority of a source that the Memory has and Sources lacks. Defaults to
	// 0 for each.
	Unconfigured func(name string) int
	// Decoding bounds the memory of large changes while they are decoded. Others may use it
	// too. Defaults to no bound.
	Decoding *budget.Budget
	// First are changes of layers that are made before anything is applied, such as the end of a
	// trial that was due before the start. Layers that the Memory does not keep are left out.
	First []First
	// Complete is called once: after the first transaction of phase known or pruned, when
	// everything that the sources declare has been applied or has failed. Without a source it
	// is called when the patience has ended. Run's goroutine
	// calls it, so it must not block. Defaults to doing nothing.
	Complete func()
	Log      *slog.Logger // Defaults to slog.Default
}

// An Orchestrator merges sources; see the package documentation.
type Orchestrator struct {
	sched   Committer
	retry   scheduler.RetryPolicy
	log     *slog.Logger
	memory  Memory
	sources []*source // the highest priority first; see rank
	fixed   []*source // those of Options
	layers  LayerOptions
	// The priority of a source that is not configured.
	unconfigured func(name string) int
	shown        atomic.Pointer[[]*source] // sources, for other goroutines

	grace                   time.Duration
	gracePercent, graceKeys int

	phase     phase
	complete  func() // nil: was called
	first     []First
	madeFirst bool // first has changed a layer
	patience  time.Duration
	deferred  map[string]*scheduler.Value // before phase known: removals, with the values that stay until then
	unsaved   []unsavedEvent              // changes that Memory has not learned yet

	asked    chan func() // questions for Run's goroutine
	stopped  chan struct{}
	declared *queue     // requests for layers
	waiting  []*request // requests in the next transaction
	outcomes outcomes
	txns     transactions
	large    largeDecoder
	pulse    pulse.Pulse // of Run's goroutine
	stacked  []*entry    // reused by stack
}

// New returns an Orchestrator of opts.Sources. It does nothing before Run.
func New(sched Committer, opts Options) *Orchestrator {
	o := &Orchestrator{
		outcomes: outcomes{ready: wake.New()}, large: newLargeDecoder(opts.Decoding),
		retry: opts.Retry, log: cmp.Or(opts.Log, slog.Default()), memory: opts.Memory,
		patience: cmp.Or(opts.Patience, 100*time.Millisecond), grace: cmp.Or(opts.Grace, 10*time.Second),
		gracePercent: cmp.Or(opts.GracePercent, 33), graceKeys: cmp.Or(opts.GraceKeys, 5),
		deferred: map[string]*scheduler.Value{}, asked: make(chan func()), stopped: make(chan struct{}),
	}
	o.sched = resting{sched, &o.pulse}
	o.complete, o.first = opts.Complete, opts.First
	if o.complete == nil {
		o.complete = func() {}
	}
	if o.unconfigured = opts.Unconfigured; o.unconfigured == nil {
		o.unconfigured = func(string) int { return 0 }
	}
	o.layers, o.declared = opts.Layers.complete(), newQueue(o.stopped)
	for _, l := range opts.Sources {
		o.fixed = append(o.fixed, &source{Source: l, entries: newEntries(), synced: l.Local != nil})
	}
	o.rank(slices.Clone(o.fixed))
	return o
}

// Pulse tells whether the goroutine of Run is stuck. Waiting for the scheduler is not.
func (o *Orchestrator) Pulse() *pulse.Pulse { return &o.pulse }

// Run merges the sources until ctx ends. It is called once.
func (o *Orchestrator) Run(ctx context.Context) error {
	defer o.stop()
	defer o.large.working.Wait()
	o.loadMemory()
	o.makeFirst()
	patience, begun := time.NewTimer(o.patience), time.Now()
	defer patience.Stop()
	doubts := newAlarm()
	defer doubts.stop()
	receive := func(ch any) reflect.SelectCase {
		return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)}
	}
	cases := []reflect.SelectCase{receive(ctx.Done()), receive(patience.C), receive(o.asked), receive(doubts.timer.C), receive(o.declared.ready.C()), receive(o.outcomes.ready.C()), receive(o.large.ready.C())}
	others := len(cases)
	for _, l := range o.fixed {
		l.publish()
		cases = append(cases, receive(l.ready()))
	}
	before := o.phase
	for {
		doubts.set(o.nextDue())
		if before == starting && o.phase != starting {
			o.declared.ready.Set() // for all-or-nothing requests, which have waited
		}
		before = o.phase
		for i, l := range o.fixed {
			cases[others+i].Chan = l.awaited()
		}
		o.pulse.Rest()
		chosen, got, _ := reflect.Select(cases)
		o.pulse.Work()
		switch chosen {
		case 0:
			return nil
		case 1:
			waited := time.Since(begun)
			if o.patienceEnded(ctx, waited) {
				patience.Reset(min(max(arrivalWait/10, waited/4), arrivalWait))
			}
		case 2:
			got.Interface().(func())()
		case 3:
			o.relist(time.Now())
		case 4:
			o.serveLayer(ctx)
		case 5:
			o.takeOutcomes(ctx)
		case 6:
			o.takeDecoded(ctx)
		default:
			o.handle(ctx, o.fixed[chosen-others])
		}
	}
}

// handle processes the next change of a source.
func (o *Orchestrator) handle(ctx context.Context, l *source) {
	o.again(ctx, l)
	if l.Local != nil {
		if r := l.Local.next(true); r != nil {
			o.serve(ctx, l, r)
		}
	} else if change, ok := l.Feed.Take(); ok {
		// The first transaction has all that the sources have delivered, so it waits.
		if o.phase >= partial && isLarge(change.Events) {
			o.decodeLarge(ctx, l, change)
			return
		}
		o.take(ctx, l, change)
	} else if o.phase < known && l.isOfAnother() {
		o.commit(ctx, nil, o.incomplete(), nil, false) // the other sources may be complete
	}
}

// takeDecoded merges the changes that a largeDecoder has decoded.
func (o *Orchestrator) takeDecoded(ctx context.Context) {
	for _, a := range o.large.take() {
		a.source.busy = false
		o.take(ctx, a.source, a.change)
	}
}

// descriptionOf returns the description of the transaction of a change. Its revisions are those of the keys, by which
// people find a change in the store: it alone may know who has made it.
func descriptionOf(c kvdbsync.Change) string {
	first, last := int64(math.MaxInt64), int64(0)
	for i := range c.Events {
		if rev := c.Events[i].Rev; rev != 0 {
			first, last = min(first, rev), max(last, rev)
		}
	}
	return writer(c.Source, "", first, last)
}

// patienceEnded commits the content that is known so far. It reports whether a source gets
// more time before its saved content is used.
func (o *Orchestrator) patienceEnded(ctx context.Context, waited time.Duration) (again bool) {
	o.phase = max(o.phase, ready)
	var changes []scheduler.Change
	for _, l := range o.sources {
		switch {
		case l.synced || len(l.saved) == 0:
		case l.withheld(), waited < arrivalWait && l.arriving():
			again = true
		default:
			changes = append(changes, o.useSaved(l, "it is not complete yet")...)
			l.publish()
		}
	}
	o.commit(ctx, nil, o.incomplete(), changes, false)
	if o.idle() {
		o.reportComplete()
	}
	return again
}

// take merges a change of a source and commits the result.
func (o *Orchestrator) take(ctx context.Context, l *source, c kvdbsync.Change) {
	if c.Synced && !l.synced {
		l.distrust = c.Listing.Succeeds(l.dataset.listing())
	}
	if c.Resynced || len(l.doubts) > 0 || slices.ContainsFunc(c.Events, isAbsent) {
		o.withholdDoubtful(l, &c)
	}
	// Deferred removals make changes from values that no source has any more.
	fresh := len(o.deferred) == 0 && !slices.ContainsFunc(o.sources, func(l *source) bool { return l.entries.Len() > 0 })
	changes, said := o.merge(l, c.Events)
	if l.refused > 0 {
		o.reportRefusals(l, c.Events, said)
	}
	if c.Synced && len(l.saved) > 0 {
		changes = append(changes, o.dropStale(l, c)...)
	}
	if len(c.Problems)+len(l.problems) > 0 {
		l.reportProblems(o.log, c.Problems)
	}
	l.synced = l.synced || c.Synced
	l.publish()
	o.saveUnsaved()
	if c.Resynced {
		o.saveDataset(l, c.Listing)
	}
	o.commit(ctx, l, descriptionOf(c), changes, fresh)
	if c.Resynced {
		o.txns.add(l, c.Listing.Began)
	}
}
