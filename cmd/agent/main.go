// Agent keeps the network of this host as keys and values declare it: it reads
// them from stores, works out what has to be done, and does it. serve, in
// agent.go, wires all of it; `agent -h` is for the person who runs it.
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

// What the process ends with.
const (
	exitOrderly = 0
	exitFailed  = 1
	exitUsage   = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

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
	context.AfterFunc(ctx, restore) // from then on a signal ends the process at once

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

// errSlow is what within returns when time is up.
var errSlow = errors.New("did not end in order in time")

// within calls do, which is to end when ctx does, and stops waiting for it some
// time after that.
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
