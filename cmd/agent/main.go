// Agent configures the network of this host from keys and values: it reads them from
// stores, plans the operations, and executes them. serve, in agent.go, connects all parts;
// `agent -h` is for operators.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/keyplane/keyplane/internal/printable"
)

// Exit codes of the process.
const (
	exitOrderly = 0
	exitFailed  = 1
	exitUsage   = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// run is main without global state, so that tests can call it.
func run(args []string, env func(string) (string, bool), stdout, stderr io.Writer) int {
	s, err := parse(args, env)
	switch {
	case errors.Is(err, errHelp):
		usage(stdout)
		return exitOrderly
	case err != nil:
		fmt.Fprintln(stderr, "agent:", printable.Text(err.Error()))
		return exitUsage
	case s.Version:
		fmt.Fprintln(stdout, version())
		return exitOrderly
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: s.LogLevel}))
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(ctx, restore) // a second signal ends the process at once

	err = within(ctx, s.StopTimeout, func() error { return serve(ctx, s, log, stdout) })
	switch {
	case errors.Is(err, errConfig):
		fmt.Fprintln(stderr, "agent:", printable.Text(err.Error()))
		return exitUsage
	case err != nil:
		log.Error("agent failed", "err", err)
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
	case <-time.After(grace):
		return fmt.Errorf("%w: stop-timeout is %s", errSlow, grace)
	}
}
