package scheduler_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// deadly says to this program, started again, at which call its Create is to kill it.
const deadly = "SCHEDULER_TEST_DEADLY_CALL"

// TestPlanOutlivesACrash has Create kill the process, many times. What is read from its
// standard output must have the plan each time.
func TestPlanOutlivesACrash(t *testing.T) {
	if call := os.Getenv(deadly); call != "" {
		die(t, call)
	}
	const runs = 40
	var without atomic.Int32
	var g errgroup.Group
	g.SetLimit(4)
	for range runs {
		g.Go(func() error {
			if !strings.Contains(crash(t, "1"), "planned operations:\n      1. CREATE:") {
				without.Add(1)
			}
			return nil
		})
	}
	_ = g.Wait()
	if n := without.Load(); n > 0 {
		t.Errorf("the plan is missing in %d of %d logs", n, runs)
	}
}

// TestPlanOfARetryOutlivesACrash: the first Create fails, and the second one kills the process.
func TestPlanOfARetryOutlivesACrash(t *testing.T) {
	if call := os.Getenv(deadly); call != "" {
		die(t, call)
	}
	_, retry, found := strings.Cut(crash(t, "2"), "Retry Transaction")
	if !found || !strings.Contains(retry, "planned operations:\n      1. CREATE") {
		t.Errorf("the log ends with %q", retry)
	}
}

// crash runs the test again, in a process of its own that dies, and returns what it wrote.
func crash(t *testing.T, call string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), deadly+"="+call)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the process ended with %v, want that it was killed: %s", err, out)
	}
	return string(out)
}

func die(t *testing.T, call string) {
	t.Helper()
	s := scheduler.New(scheduler.Options{TransactionLog: txnlog.New(txnlog.Options{Out: os.Stdout, Full: true}), Simulate: true})
	left, err := strconv.Atoi(call)
	must(t, err)
	plain(t, s, func(string) error {
		if left--; left > 0 {
			return errors.New("not yet")
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	})
	defer begin(t, s)()
	_, _ = s.Commit(t.Context(), scheduler.Txn{Changes: interfacesNamed(t, s, 1), Retry: scheduler.RetryPolicy{Period: time.Millisecond}})
	select {}
}
