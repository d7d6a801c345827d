// Package watchdog reports to the service manager that the event loops of this process go on. When
// one of them is stuck the reports stop, and the manager ends and restarts the process
// (WatchdogSec= of systemd, sd_watchdog_enabled(3)).
package watchdog

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/keyplane/keyplane/internal/pulse"
)

// A Watchdog reports while all of its loops are alive. All fields are required.
//
// A store, VPP or a disk that does not answer makes no loop stuck: the loops wait for it
// elsewhere, and a restart would not repair it.
type Watchdog struct {
	Every  time.Duration // between two reports
	Notify func(ctx context.Context, state string)
	Loops  map[string]*pulse.Watch // by name, for the log
	Log    *slog.Logger
}

// alive is the report (sd_notify(3)).
const alive = "WATCHDOG=1"

// Period returns the time between two reports: a third of what the service manager allows, so
// that a late one does no harm. It is 0 if the manager expects none of this process.
func Period(env func(string) string, pid int) (time.Duration, error) {
	limit := env("WATCHDOG_USEC")
	if limit == "" {
		return 0, nil
	}
	if of := env("WATCHDOG_PID"); of != "" && of != strconv.Itoa(pid) {
		return 0, nil // inherited from another process
	}
	us, err := strconv.ParseInt(limit, 10, 64)
	if err != nil || us <= 0 {
		return 0, fmt.Errorf("WATCHDOG_USEC is %q; expected a number of microseconds", limit)
	}
	return max(time.Duration(us)*time.Microsecond/3, time.Millisecond), nil
}

// Run reports until ctx ends.
func (w Watchdog) Run(ctx context.Context) error {
	tick := time.NewTicker(w.Every)
	defer tick.Stop()
	for {
		if w.allAlive() {
			w.Notify(ctx, alive)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// allAlive looks at each loop, and logs those that are stuck.
func (w Watchdog) allAlive() bool {
	all := true
	for name, loop := range w.Loops {
		if !loop.Alive() {
			w.Log.Error("an event loop is stuck; the service manager restarts the agent unless it goes on", "loop", name, "for_at_least", w.Every)
			all = false
		}
	}
	return all
}
