package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mdlayher/sdnotify"

	"github.com/keyplane/keyplane/agent/internal/goruntime"
	"github.com/keyplane/keyplane/internal/pulse"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/internal/watchdog"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// newNotifier connects to the socket of the service manager, in NOTIFY_SOCKET. It returns
// nil without that variable, and if the agent is not the process as a whole; the methods of
// a nil Notifier do nothing.
func (o Options) newNotifier() (*sdnotify.Notifier, error) {
	if !o.process || os.Getenv(sdnotify.Socket) == "" {
		return nil, nil
	}
	n, err := sdnotify.New()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sdnotify.Socket, err)
	}
	return n, nil
}

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

// announce reports the applied network, after the transaction log has been written. An
// error of the service manager has no effect: it may be gone.
func (a announcer) announce(ctx context.Context, manager *sdnotify.Notifier) error {
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
	_ = manager.Notify(sdnotify.Statusf(applied))
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
func (a *assembly) watch(notify func(...string) error) error {
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
