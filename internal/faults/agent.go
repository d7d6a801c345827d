package faults

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
	"github.com/keyplane/keyplane/statestore"
)

// An Agent is the whole way from a store to a southbound, with an observer at each step.
type Agent struct {
	Source *kvdbsync.Source
	South  *Southbound

	sched    *scheduler.Scheduler
	orch     *orchestrator.Orchestrator
	watches  *seenWatches
	memories *memories // nil: none
}

// memories are the state of an Agent on disk.
type memories struct{ intent, applied *statestore.Store }

// openMemories opens one folder for the declared values and one for the applied ones, as
// the product does.
func openMemories(dir string, log *slog.Logger) (*memories, error) {
	intent, err := statestore.Open(filepath.Join(dir, "intent"), statestore.Options{Log: log})
	if err != nil {
		return nil, err
	}
	applied, err := statestore.Open(filepath.Join(dir, "applied"), statestore.Options{Log: log})
	return &memories{intent, applied}, err
}

// seeing receives the changes that an observer has seen. It calls changes only if it
// records them.
type seeing func(who string, all bool, changes func() []history.Change)

// agentOptions are the parts of an Agent.
type agentOptions struct {
	connector kvdbsync.Connector
	withhold  func() error // nil: nothing is withheld
	south     *Southbound
	root      string        // Defaults to root
	see       seeing        // nil: nothing is recorded
	grace     time.Duration // of the orchestrator; 0: its default
	log       *slog.Logger
	memories  *memories // nil: the agent has no state on disk
	committed func()    // runs after each transaction; may be nil
}

// newAgent wires source, orchestrator and scheduler like package agent, with an observer
// between each two of them. It has no northbound, and its southbound is a map.
func newAgent(o agentOptions) (*Agent, error) {
	if o.see == nil {
		o.see = func(string, bool, func() []history.Change) {}
	}
	a := &Agent{South: o.south}
	schedule, orchestrate := scheduler.Options{Log: o.log, TransactionLog: txnlog.New(txnlog.Options{Out: io.Discard, Log: o.log})}, orchestrator.Options{Log: o.log, Grace: o.grace}
	if o.memories != nil {
		a.memories = o.memories
		schedule.Memory, orchestrate.Memory = o.memories.applied, o.memories.intent
	}
	a.sched = scheduler.New(schedule)
	if err := o.south.register(a.sched); err != nil {
		return nil, err
	}
	a.watches = &seenWatches{Connector: o.connector, see: o.see}
	a.Source = kvdbsync.NewSource(kvdbsync.Options{
		Name: "store", Connector: a.watches, Root: cmp.Or(o.root, stores.Root), Prefix: "config/", Withhold: o.withhold, Log: o.log,
		Decode: func(e kvdbsync.Event) any { return orchestrator.Decode(a.sched, o.log, e) },
	})
	orchestrate.Sources = []orchestrator.Source{{Name: "store", Feed: seenTakes{a.Source, o.see}}}
	a.orch = orchestrator.New(seenTxns{a.sched, o.see, o.committed}, orchestrate)
	return a, nil
}

// Run runs the agent until ctx ends.
func (a *Agent) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	tasks := []func(context.Context) error{a.sched.Run, a.Source.Run, a.orch.Run}
	if a.memories != nil {
		tasks = append(tasks, a.memories.intent.Run, a.memories.applied.Run)
	}
	for _, run := range tasks {
		g.Go(func() error { return run(ctx) })
	}
	return g.Wait()
}

// changesBeside returns the changes without removals while the store has problems, for
// example after an eviction. Such a removal is not the result of a write.
func changesBeside(problems []error, events []kvdbsync.Event) []history.Change {
	if len(problems) > 0 {
		events = slices.DeleteFunc(slices.Clone(events), func(e kvdbsync.Event) bool { return e.Absent })
	}
	return changesOf(events)
}

// changesOf returns the changes that events announce. Events with an error are left out:
// they say nothing about the present text.
func changesOf(events []kvdbsync.Event) []history.Change {
	out := make([]history.Change, 0, len(events))
	for _, e := range events {
		c := history.Change{Key: stores.NameOf(e.Key)}
		switch {
		case e.Err != nil:
			continue
		case e.Value != nil:
			c.Text = stores.TextOf(e.Value)
		}
		out = append(out, c)
	}
	return out
}

// seenWatches records the batches of each watch. It records nothing before a watch is
// synced, and then the whole list.
type seenWatches struct {
	kvdbsync.Connector
	see   seeing
	count atomic.Int64
	begun atomic.Int64                  // begin of the last synced watch, since the Unix epoch
	held  atomic.Pointer[chan struct{}] // not nil: batches wait until the channel is closed
}

// holdWatch delays the next batches of the connector until release is called.
func (a *Agent) holdWatch() (release func()) {
	held := make(chan struct{})
	a.watches.held.Store(&held)
	return func() { close(held) }
}

// Watch passes the batches of the connector on, and records them first. So a value that
// the source takes was always recorded before.
func (c *seenWatches) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		begun := time.Now().UnixNano()
		who := fmt.Sprintf("watch %d", c.count.Add(1))
		var listing []kvdbsync.Event
		synced := false
		for b, err := range c.Connector.Watch(ctx, prefix) {
			if !synced {
				listing = append(listing, b.Events...)
			}
			switch {
			case err != nil:
			case synced:
				c.see(who, false, func() []history.Change { return changesBeside(b.Problems, b.Events) })
			case b.Synced:
				synced = true
				c.begun.Store(begun)
				c.see(who, true, func() []history.Change { return lastOfEach(changesOf(listing)) })
				listing = nil
			}
			// The batch is recorded before it waits: the connector has delivered it
			// already.
			if held := c.held.Load(); held != nil {
				<-*held
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// lastBegun returns the time at which the last synced watch began.
func (c *seenWatches) lastBegun() time.Time { return time.Unix(0, c.begun.Load()) }

// lastOfEach returns the last change of each key.
func lastOfEach(changes []history.Change) (out []history.Change) {
	at := map[string]int{}
	for _, c := range changes {
		if i, ok := at[c.Key]; ok {
			out[i] = c
			continue
		}
		at[c.Key] = len(out)
		out = append(out, c)
	}
	return out
}

// seenTakes records the changes that the orchestrator takes from a source.
type seenTakes struct {
	*kvdbsync.Source
	see seeing
}

// Take records the events that the source hands over. A problem of the store is passed on.
func (s seenTakes) Take() (kvdbsync.Change, bool) {
	c, ok := s.Source.Take()
	if len(c.Events) > 0 {
		s.see("source", false, func() []history.Change { return changesBeside(c.Problems, c.Events) })
	}
	return c, ok
}

// seenTxns records the transactions of the orchestrator.
type seenTxns struct {
	orchestrator.Committer
	see       seeing
	committed func() // may be nil
}

// Start records the transaction before the scheduler sees it, so the southbound cannot be
// ahead of this record.
func (s seenTxns) Start(ctx context.Context, txn scheduler.Txn, ended func(*scheduler.Record, error)) error {
	s.see("orchestrator", txn.Replace, func() []history.Change { return changesIn(txn) })
	return s.Committer.Start(ctx, txn, func(record *scheduler.Record, err error) {
		ended(record, err)
		if s.committed != nil {
			s.committed()
		}
	})
}

// changesIn returns the changes of a transaction. A change with an error keeps the last
// valid value, so it is no change of the text.
func changesIn(txn scheduler.Txn) []history.Change {
	changes := make([]history.Change, 0, len(txn.Changes))
	for _, c := range txn.Changes {
		switch {
		case c.Value != nil:
			v := c.Value.Message().(*interfaces.Interface)
			changes = append(changes, history.Change{Key: v.GetName(), Text: v.GetHostIfName()})
		case c.Err == nil:
			changes = append(changes, history.Change{Key: stores.NameOf(c.Key)})
		}
	}
	return changes
}
