// Package orchestrator merges what several sources declare into one intent, and
// hands it to the scheduler. Bytes are on its left, typed values on its right;
// it is the only place that turns one into the other.
//
//	o := orchestrator.New(sched, orchestrator.Options{Layers: []orchestrator.Layer{
//		{Name: "etcd", Priority: 20, Input: etcdSource},
//		{Name: "filedb", Priority: 10, Input: fileSource},
//	}})
//	err := o.Run(ctx)
//
// Each source is a [Layer]. The value of a key is the one in the highest layer
// that has a valid one; deleting it there uncovers the next. So the same inputs
// give the same result, however they were interleaved.
//
// A value that does not parse, does not belong under its key, or is refused by
// its descriptor is quarantined: its key is INVALID with the reason, what was
// last valid in that layer stays in force, and everything else goes on. A key
// that no descriptor has is UNIMPLEMENTED.
//
// What layers put is applied as it comes, but for a moment at the start in which
// they can all become known. Nothing is removed from the network
// before every layer has delivered one complete snapshot; then, as soon as no
// layer has a problem that might hide something, what nobody declares goes. A
// removal that a store reports is obeyed at once. A removal that only a listing implies
// is put in doubt if the listing is not credible: it lacks many keys at once, or
// shows other data than before. A listing after the grace time decides then. Values
// of the same listing are applied at once. Everything that a layer changed at once is
// one transaction.
//
// With a [Memory] it knows after a restart what each layer last declared. What a layer
// declares is remembered before it is applied, so a kill at any moment brings back no older
// value and nothing that was removed. A layer that is not there when patience ends is
// followed as remembered, until its first complete snapshot replaces that; what it no longer
// has goes then, by the rules above. What was last valid under a key stays in force across
// restarts, too. A memory that missed changes is not used for sources: what stands stays
// until they are there.
//
// What programs declare, by gRPC or in the process, is a layer too, a [Local], which tells
// each caller what became of the request. With a Memory, a request that cannot be remembered
// is refused, as its layer is kept nowhere else.
//
// Health tells how each source is, and [Orchestrator.Claims] which of them hold a key
// and who wins.
//
// Run's goroutine owns all of the state. Tests drive it with layers made of
// channels, in virtual time; that the result does not depend on the order of the inputs,
// nor on restarts between them, is tested with random lives.
package orchestrator

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// An Input is where a layer's content comes from; *kvdbsync.Source is one. Its
// keys are relative to the agent's own prefix.
type Input interface {
	// Ready holds a token whenever there is something to take.
	Ready() <-chan struct{}
	// Take returns what changed since the last time.
	Take() (kvdbsync.Change, bool)
}

// A foreseeing Input can have its events decoded before they are taken.
type foreseeing interface {
	Ahead(decode func(kvdbsync.Event) any)
}

// A Layer is one source of intent.
type Layer struct {
	Name     string // unique
	Priority int    // the highest wins; of equals the first by name
	Input    Input
	Local    *Local // instead of Input: what programs make
}

// A Committer takes transactions; *scheduler.Scheduler is one.
type Committer interface {
	Decode(key string, data []byte) (scheduler.Value, error)
	Commit(ctx context.Context, txn scheduler.Txn) (*scheduler.Record, error)
}

// Options are those of an Orchestrator.
type Options struct {
	Layers []Layer
	Retry  scheduler.Retry
	// Patience is how long to wait at the start for every layer's first snapshot
	// before what is there is applied. A remembered layer whose source is being listed, or
	// connects for the first time, is waited for 3 s. Defaults to 100 ms.
	Patience time.Duration
	// Grace is how long a removal waits that only a listing tells of, if the listing
	// is not credible: a listing that begins later decides. Defaults to 10 s.
	Grace time.Duration
	// GracePercent is the share of the keys that a layer had: a listing that lacks so
	// many of them at once is not credible. GraceKeys is how many keys that must be at
	// least. A listing without any key is not credible, nor is one of other data
	// than before, whatever its size. They default to 33 and to 5.
	GracePercent, GraceKeys int
	// Memory is what layers had when the agent last ran, and learns what they have.
	// Defaults to none.
	Memory Memory
	Log    *slog.Logger // Defaults to slog.Default
}

// An Orchestrator merges layers; see the package documentation.
type Orchestrator struct {
	sched  Committer
	retry  scheduler.Retry
	log    *slog.Logger
	memory Memory
	layers []*layer // the highest first

	grace                   time.Duration
	gracePercent, graceKeys int

	patience time.Duration               // left; only before anything was committed
	began    bool                        // something was committed
	known    bool                        // every layer has delivered a complete snapshot
	complete bool                        // and none had a problem: what nobody declares has been removed
	held     map[string]*scheduler.Value // removals that wait until all is known, with what stays till then
	learned  []lesson                    // for the memory, since it was last told

	asked   chan func() // questions for Run's goroutine
	stopped chan struct{}
	waiting []*request // of Locals, for the next transaction
	stacked []*entry   // room for stack
}

// New returns an Orchestrator of opts.Layers. It does nothing before Run.
func New(sched Committer, opts Options) *Orchestrator {
	o := &Orchestrator{
		sched: sched, retry: opts.Retry, log: cmp.Or(opts.Log, slog.Default()), memory: opts.Memory,
		patience: cmp.Or(opts.Patience, 100*time.Millisecond), grace: cmp.Or(opts.Grace, 10*time.Second),
		gracePercent: cmp.Or(opts.GracePercent, 33), graceKeys: cmp.Or(opts.GraceKeys, 5),
		held: map[string]*scheduler.Value{}, asked: make(chan func()), stopped: make(chan struct{}),
	}
	for _, l := range opts.Layers {
		if input, ok := l.Input.(foreseeing); ok {
			input.Ahead(o.ahead)
		}
		o.layers = append(o.layers, &layer{Layer: l, entries: map[string]*entry{}, synced: l.Local != nil})
	}
	slices.SortFunc(o.layers, func(a, b *layer) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	for rank, l := range o.layers {
		l.rank = rank
	}
	return o
}

// Run follows the layers until ctx ends. It is called once.
func (o *Orchestrator) Run(ctx context.Context) error {
	defer o.stop()
	o.recollect()
	patience, begun := time.NewTimer(o.patience), time.Now()
	defer patience.Stop()
	doubts := newAlarm()
	defer doubts.stop()
	receive := func(ch any) reflect.SelectCase {
		return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)}
	}
	cases := []reflect.SelectCase{receive(ctx.Done()), receive(patience.C), receive(o.asked), receive(doubts.timer.C)}
	others := len(cases)
	for _, l := range o.layers {
		l.publish()
		cases = append(cases, receive(l.ready()))
	}
	for {
		doubts.set(o.nextDue())
		switch chosen, got, _ := reflect.Select(cases); chosen {
		case 0:
			return nil
		case 1:
			if o.impatient(ctx, time.Since(begun)) {
				patience.Reset(arrivalPatience / 10)
			}
		case 2:
			got.Interface().(func())()
		case 3:
			o.relist(time.Now())
		default:
			o.attend(ctx, o.layers[chosen-others])
		}
	}
}

// attend sees to a layer that has something.
func (o *Orchestrator) attend(ctx context.Context, l *layer) {
	if l.Local != nil {
		o.serve(ctx, l)
	} else if change, ok := l.Input.Take(); ok {
		o.follow(ctx, l, change)
	}
}

// impatient goes on with what there is, and tells whether a layer is still to be
// waited for before what is remembered of it counts.
func (o *Orchestrator) impatient(ctx context.Context, waited time.Duration) (again bool) {
	o.patience = 0
	var changes []scheduler.Change
	for _, l := range o.layers {
		switch {
		case l.synced || len(l.past) == 0:
		case waited < arrivalPatience && l.arriving():
			again = true
		default:
			changes = append(changes, o.restore(l, "it is not there yet")...)
			l.publish()
		}
	}
	o.commit(ctx, o.incomplete(), changes, false)
	return again
}

// follow brings a layer up to date and commits what that changes.
func (o *Orchestrator) follow(ctx context.Context, l *layer, c kvdbsync.Change) {
	if c.Synced && !l.synced {
		l.distrust = c.Listing.Succeeds(l.data.listing())
	}
	o.doubtful(l, &c)
	fresh := !slices.ContainsFunc(o.layers, func(l *layer) bool { return len(l.entries) > 0 })
	merged, said := o.merge(l, c.Events)
	o.reportRefusals(l, c.Events, said)
	changes := slices.Concat(merged, o.outgrow(l, c))
	l.reportProblems(o.log, c.Problems)
	l.synced = l.synced || c.Synced
	l.publish()
	o.tell()
	o.learnData(l, c)
	o.commit(ctx, l.Name, changes, fresh)
}

// commit hands on what changed; or all there is, when it is the first time, when
// now every layer is known, and when now none has a problem. fresh says that before the
// changes there was nothing.
func (o *Orchestrator) commit(ctx context.Context, what string, changes []scheduler.Change, fresh bool) {
	all := func() []scheduler.Change {
		if fresh {
			return sorted(changes)
		}
		return o.all()
	}
	known := len(o.layers) > 0 && !slices.ContainsFunc(o.layers, func(l *layer) bool { return !l.synced })
	clean := known && !slices.ContainsFunc(o.layers, func(l *layer) bool { return len(l.problems) > 0 })
	txn := scheduler.Txn{Description: what, Changes: changes, Retry: o.retry, Refresh: !o.began}
	switch {
	case clean && !o.complete:
		o.known, o.complete = true, true
		txn.Description = "all sources are complete"
		txn.Changes, txn.Refresh, txn.Replace = all(), true, true
	case known && !o.known:
		o.known = true
		txn.Description = "all sources are complete, but have problems: what nobody declares stays"
		txn.Changes = append(all(), o.released()...)
		o.log.Warn("what nobody declares stays in place while a source has problems")
	case !o.began && o.patience > 0:
		return
	case !o.began:
		txn.Description = o.incomplete()
		txn.Changes = all()
	}
	if len(txn.Changes) == 0 && !txn.Replace {
		o.answer(nil, nil)
		return
	}
	o.began = true
	record, err := o.sched.Commit(ctx, txn)
	o.answer(record, err)
	if record != nil {
		o.report(record)
	} else if ctx.Err() == nil {
		o.log.Error("transaction not done", "what", txn.Description, "err", err)
	}
}
