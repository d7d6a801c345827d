package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/keyplane/keyplane/agent/internal/goruntime"
	"github.com/keyplane/keyplane/internal/logs"
	"github.com/keyplane/keyplane/internal/printable"
)

// Exit codes of the process.
const (
	exitOrderly = 0
	exitFailed  = 1
	exitUsage   = 2
)

// Main runs the agent as a program: SIGTERM or SIGINT end it in order, a second one at once.
// It does not return; the help lists its exit codes.
func Main(o Options) {
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, restore) // a second signal ends the process at once
	goruntime.AddThreads(os.LookupEnv)
	// A pipe whose reader has ended, such as that of a log collector, loses the log, and not the agent.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(o.forProcess().run(ctx))
}

// Run runs the agent until ctx ends. It returns nil if the agent ended in order. The help and
// the version, if Args request them, go to Stdout, as in Main.
func Run(ctx context.Context, o Options) error {
	o = o.complete()
	if err := o.check(); err != nil {
		return err
	}
	s, err := o.parse()
	switch {
	case errors.Is(err, errHelp):
		o.usage(o.Stdout)
		return nil
	case err != nil:
		return err
	case s.Version:
		fmt.Fprintln(o.Stdout, version(o.Name))
		return nil
	}
	loggers, err := openLogs(s, o.Stderr)
	if err != nil {
		return err
	}
	return within(ctx, s.StopTimeout, func() error { return serve(ctx, s, loggers, o.Stdout) })
}

// run runs the agent, writes its error to Stderr, and returns the exit code.
func (o Options) run(ctx context.Context) int {
	o = o.complete()
	err := Run(ctx, o)
	last := logs.NewSink(o.Stderr) // a reader that hangs must not keep the process
	switch {
	case errors.Is(err, errConfig), errors.Is(err, errUsage):
		fmt.Fprintln(last, o.Name+":", printable.Text(err.Error()))
		return exitUsage
	case err != nil:
		slog.New(slog.NewTextHandler(last, nil)).Error("agent failed", "err", err)
		return exitFailed
	}
	return exitOrderly
}

// errSlow reports that the agent did not stop in time.
var errSlow = errors.New("did not stop in time")

// within calls do and waits for it. After ctx has ended it waits for the grace time only,
// so that a hanging southbound cannot prevent the exit.
func within(ctx context.Context, grace time.Duration, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	// The goroutine of do is left behind; the process ends.
	case <-time.After(grace):
		return fmt.Errorf("%w: stop-timeout is %s", errSlow, grace)
	}
}
