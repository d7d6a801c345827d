package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/keyplane/keyplane/agent/internal/goruntime"
	"github.com/keyplane/keyplane/agent/internal/manager"
	"github.com/keyplane/keyplane/internal/pulse"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/internal/watchdog"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// applied is the status after the first transaction with all sources. Programs that start
// an agent wait for it.
const applied = "the declared network is applied"

// An announcer reports to the service manager that the declared network is applied.
type announcer struct {
	// Its transaction log is waited for, so that a reader sees the changes before the
	// announcement.
	sched    *scheduler.Scheduler
	complete wake.Signal // set by the orchestrator
	applied  func()      // called before the announcement
	started  func()      // called when the start is over
}

// logTimeout limits the wait for the transaction log, whose reader may be slow.
const logTimeout = 5 * time.Second

// announce reports the applied network, after the transaction log has been written.
func (a announcer) announce(ctx context.Context, m manager.Manager) error {
	select {
	case <-a.complete.C():
	case <-ctx.Done():
		return nil
	}
	a.applied()
	flushing, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	err := a.sched.Flush(flushing)
	// An agent that ends must not report that it is ready.
	if ctx.Err() != nil || errors.Is(err, scheduler.ErrStopped) {
		return nil
	}
	reporting, cancel := context.WithTimeout(ctx, manager.Timeout)
	defer cancel()
	m.Notify(reporting, "STATUS="+applied)
	goruntime.AwaitQuiet(ctx, a.operations)
	a.started()
	return nil
}

// operations returns the number of executed operations.
func (a announcer) operations() (n uint64) {
	for _, count := range stats.Of(a.sched).Operations {
		n += count
	}
	return n
}

// watch adds the watchdog to the tasks that run until the end.
func (a *assembly) watch(notify func(context.Context, string)) error {
	if !a.options.process {
		return nil
	}
	every, err := watchdog.Period(os.Getenv, os.Getpid())
	if err != nil {
		return fmt.Errorf("%w: %w", errConfig, err)
	}
	if every == 0 {
		return nil
	}
	w := watchdog.Watchdog{Every: every, Notify: notify, Loops: map[string]*pulse.Watch{
		"scheduler":    a.Scheduler.Pulse().Watch(),
		"orchestrator": a.Orchestrator.Pulse().Watch(),
	}, Log: a.Log}
	a.below = append(a.below, Task{"watchdog", w.Run})
	return nil
}
