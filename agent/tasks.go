package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"
)

// do runs the task, and names it in its error.
func (t Task) do(ctx context.Context, log *slog.Logger) error {
	err := t.Run(ctx)
	log.Debug("task ended", "task", t.Name, "err", err)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return nil
}

// runTasks runs all tasks until ctx ends or one of them fails. They stop in this order:
//
//  1. tasks above, which produce transactions
//  2. last runs, unless a task has failed
//  3. tasks below, which execute and report transactions
func runTasks(ctx context.Context, log *slog.Logger, below, above []Task, last Task) error {
	lowCtx, endLow := context.WithCancel(context.WithoutCancel(ctx))
	defer endLow()
	low, lowCtx := group(lowCtx, log, below)

	highCtx, endHigh := context.WithCancel(ctx)
	defer endHigh()
	high, _ := group(highCtx, log, above)
	context.AfterFunc(lowCtx, endHigh)

	err := high.Wait()
	if err == nil && lowCtx.Err() == nil {
		err = last.do(lowCtx, log)
	}
	endLow()
	return errors.Join(err, low.Wait())
}

// group runs tasks until the first one fails, which ends the context of the others.
func group(ctx context.Context, log *slog.Logger, tasks []Task) (*errgroup.Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range tasks {
		g.Go(func() error { return t.do(ctx, log) })
	}
	return g, ctx
}
