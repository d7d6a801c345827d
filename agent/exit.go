package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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

// removeAll removes everything that the agent has created, now or in an earlier run, and looks whether it has gone. It
// reads the system back first: as long as the sources are not complete, the scheduler may not know the items of earlier
// runs. Where a connection breaks meanwhile, it begins again, for half of stop-timeout.
func (a *assembly) removeAll(ctx context.Context) error {
	if a.Linux != nil {
		defer a.Linux.RemoveNamespaces(ctx) // its own task would end before it has done that
	}
	again, cancel := context.WithTimeout(ctx, a.StopTimeout/2)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause *= 2 { // each attempt reads everything back
		missing := a.reachVPP(again)
		_, err := a.Scheduler.Commit(ctx, scheduler.Txn{Description: "the agent ends", Refresh: true, Replace: true, Retry: scheduler.RetryPolicy{Never: true}})
		if _, failed := errors.AsType[*scheduler.TxnError](err); err != nil && !failed {
			return fmt.Errorf("removing the network: %w", err)
		}
		left := a.left()
		if len(left) == 0 && missing == nil {
			a.Log.Info("network removed", "on_exit", a.OnExit)
			return nil
		}
		select {
		case <-time.After(pause):
			continue
		case <-again.Done():
		}
		if missing != nil {
			a.Log.Warn("VPP does not answer; its items are left", "err", missing)
		}
		if len(left) > 0 {
			a.Log.Warn("items are left", "count", len(left), "keys", left[:min(len(left), mostLeft)])
		}
		return fmt.Errorf("removing the network: %w", errLeft)
	}
}

// mostLeft bounds the keys in a warning.
const mostLeft = 100

// errLeft says that not everything was removed.
var errLeft = errors.New("items are left; the log names them")

// left returns the keys of the items that are still there, or of which nobody knows. A VPP that does not run has none.
func (a *assembly) left() (keys []string) {
	off := map[string]bool{} // kinds of items in a VPP that does not run
	if a.VPP != nil && isOff(a.VPP.Connection().Err) {
		for _, c := range a.Scheduler.Connections() {
			for _, k := range c.Kinds {
				off[k.Descriptor] = off[k.Descriptor] || c.Name == vpp.ConnectionName
			}
		}
	}
	for st := range a.Scheduler.All() {
		if st.Base == "" && st.State != scheduler.Obtained && (st.Actual != nil || st.Unknown && !off[st.Descriptor]) {
			keys = append(keys, st.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// isOff reports whether an attempt to connect failed because VPP does not run.
func isOff(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// reachVPP waits until VPP is connected: an agent that ends soon after its start has not reached it yet, and VPP may
// have items of an earlier run. It gives up when ctx ends, since Linux is to be cleaned up as well, and returns the
// reason. A VPP that does not run has no items.
func (a *assembly) reachVPP(ctx context.Context) error {
	if a.VPP == nil {
		return nil
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := a.VPP.Connection().Err
		if stats.Of(a.Scheduler).Connections[vpp.ConnectionName] || isOff(err) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}
