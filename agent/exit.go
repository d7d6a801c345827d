package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// exit returns the task that runs when the stores are not watched any more, and the
// scheduler still runs.
func (a *assembly) exit() Task {
	return Task{"exit", func(ctx context.Context) error {
		if a.OnExit == "leave" {
			a.Log.Info("network left in place", "on_exit", a.OnExit)
			return nil
		}
		return a.removeAll(ctx)
	}}
}

// removeAll removes everything that the agent has created, now or in an earlier run. It reads the system back first:
// as long as the sources are not complete, the scheduler may not know the items of earlier runs.
func (a *assembly) removeAll(ctx context.Context) error {
	missing := a.reachVPP(ctx)
	_, err := a.Scheduler.Commit(ctx, scheduler.Txn{Description: "the agent ends", Refresh: true, Replace: true, Retry: scheduler.RetryPolicy{Never: true}})
	if a.Linux != nil {
		a.Linux.RemoveNamespaces(ctx) // its own task would end before it has done that
	}
	if err != nil {
		return fmt.Errorf("removing the network: %w", err)
	}
	if missing != nil {
		a.Log.Warn("VPP does not answer; its items are left", "err", missing)
	}
	a.Log.Info("network removed", "on_exit", a.OnExit)
	return nil
}

// reachVPP waits until VPP is connected: an agent that ends soon after its start has not reached it yet, and VPP may
// have items of an earlier run. It gives up after half of stop-timeout, since Linux is to be cleaned up as well, and
// returns the reason. A VPP that does not run has no items.
func (a *assembly) reachVPP(ctx context.Context) error {
	if a.VPP == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.StopTimeout/2)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := a.VPP.Connection().Err
		if stats.Of(a.Scheduler).Connections[vpp.ConnectionName] || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}
