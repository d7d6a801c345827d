package faults

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/kvdbsync"
)

// ownerFaults are the effects of a second agent of the label.
func ownerFaults() []Fault {
	return []Fault{{Name: "second agent of the label", Do: secondAgent}}
}

// secondAgent starts another agent of the label while the first one runs. Both share only
// the store. The second one says that the first has the label, and has changed nothing; when the first has ended, it
// applies what the store has. For stores without leases, both agents are in one network namespace.
func secondAgent(r *Run) {
	label := "faults-" + owner.NewID() // used by no other run
	first, second := owner.Self(label, owner.NewID()), owner.Self(label, owner.NewID())
	// Files and Bolt: only agents of one host can share them.
	if _, leases := r.Store.Connector.(kvdbsync.Leaser); !leases {
		r.secondGuard(first, second)
		r.churn(10)
		return
	}
	holds := r.keeper(first, nil)
	end := r.run(holds)
	defer func() { end() }()
	r.until("the first agent has the label", func() bool { return holds.Withhold() == nil })
	r.churn(10)
	r.liveBeside(first, second, func() {
		end()
		end = func() {}
	})
	r.churn(10)
}

// keeper returns the guard of the label in the store, for the agent self.
func (r *Run) keeper(self owner.Holder, turned func()) *owner.Keeper {
	return owner.NewKeeper(owner.Options{
		Store: r.Kind.Name, Leaser: r.Store.Connector.(kvdbsync.Leaser), Key: owner.Key(stores.Root), Self: self, Timeout: r.Scale.Bound, Turned: turned,
	})
}

// run holds the label until end is called.
func (r *Run) run(k *owner.Keeper) (end func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			r.Errorf("the first agent ended with %v", err)
		}
	}
}

// liveBeside is the life of a second agent, until it has followed the first one, which end ends.
func (r *Run) liveBeside(first, self owner.Holder, end func()) {
	var called atomic.Int32
	south := newSouthbound(map[string]string{}, func(history.Change) error { called.Add(1); return nil })
	var agent *Agent
	k := r.keeper(self, func() { agent.Source.Recheck() })
	agent, err := newAgent(agentOptions{
		connector: r.Store.Connector, withhold: k.Withhold, south: south, grace: r.Scale.Grace, log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return agent.Run(ctx) })
	g.Go(func() error { return k.Run(ctx) })
	r.until("the second agent reads the store, and applies nothing", func() bool {
		h := agent.Source.Health()
		return h.State == kvdbsync.Withheld && errors.Is(h.Err, owner.ErrTaken) && h.Waiting > 0
	})
	r.named(first, agent.Source.Health().Err)
	if n := called.Load(); n > 0 {
		r.Errorf("the second agent did %d things", n)
	}
	end()
	r.until("the second agent applies what the store has", func() bool { return called.Load() > 0 })
	cancel()
	if err := g.Wait(); err != nil {
		r.Errorf("the second agent ended with %v", err)
	}
}

// named checks that an error names an agent.
func (r *Run) named(who owner.Holder, err error) {
	r.Helper()
	var taken *owner.TakenError
	if !errors.As(err, &taken) || taken.Holder.Installation != who.Installation || taken.Holder.PID != who.PID {
		r.Errorf("the second agent says %v: want the name of the first, %v", err, who)
	}
}

// secondGuard starts two agents in one network namespace.
func (r *Run) secondGuard(first, second owner.Holder) {
	ctx, cancel := context.WithCancel(r.ctx)
	guard, err := owner.Listen(ctx, first, slog.New(slog.DiscardHandler))
	if err != nil {
		r.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- guard.Run(ctx) }()
	begun := time.Now()
	for { // on a busy machine the first agent may need some time to answer with more than its process ID
		_, err = owner.Listen(r.ctx, second, slog.New(slog.DiscardHandler))
		var taken *owner.TakenError
		if !errors.As(err, &taken) || taken.Holder.Installation != "" || time.Since(begun) > r.Scale.Bound {
			break
		}
	}
	r.named(first, err)
	cancel()
	if err := errors.Join(<-ended, guard.Close()); err != nil {
		r.Error(err)
	}
}
