package main

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
)

// A task runs until its context ends, or returns an error earlier.
type task func(ctx context.Context) error

// runTasks runs all tasks until ctx ends or one of them fails. They stop in this order:
//
//  1. tasks above, which produce transactions
//  2. last runs, unless a task has failed
//  3. tasks below, which execute and report transactions
func runTasks(ctx context.Context, below, above []task, last task) error {
	lowCtx, endLow := context.WithCancel(context.WithoutCancel(ctx))
	defer endLow()
	low, lowCtx := group(lowCtx, below)

	highCtx, endHigh := context.WithCancel(ctx)
	defer endHigh()
	high, _ := group(highCtx, above)
	context.AfterFunc(lowCtx, endHigh)

	err := high.Wait()
	if err == nil && lowCtx.Err() == nil {
		err = last(lowCtx)
	}
	endLow()
	return errors.Join(err, low.Wait())
}

func group(ctx context.Context, tasks []task) (*errgroup.Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range tasks {
		g.Go(func() error { return t(ctx) })
	}
	return g, ctx
}
