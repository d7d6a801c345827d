package cli

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// Main runs the command line of the process, and returns the exit code. SIGINT and SIGTERM cancel
// the command, so that requests end and sessions close. A second one ends the process at once.
func Main() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lent := &atomic.Bool{}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM || !lent.Load() {
				signal.Stop(signals)
				cancel()
				return
			}
		}
	}()
	return within(ctx, func() int {
		return Run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Lent: lent}, os.LookupEnv)
	})
}

const (
	// grace is how long a cancelled command may take to end.
	grace = 5 * time.Second
	// exitKilled is the exit code of a command that did not end in that time.
	exitKilled = 1
)

// within runs a command, and returns its exit code. After ctx has ended it waits for the grace
// time only: a command that reads a pipe or standard input does not notice the end of ctx.
func within(ctx context.Context, run func() int) int {
	done := make(chan int, 1)
	go func() { done <- run() }()
	select {
	case code := <-done:
		return code
	case <-ctx.Done():
	}
	select {
	case code := <-done:
		return code
	case <-time.After(grace):
		return exitKilled
	}
}
