package main

import (
	"context"
	"io"
	"sync"
	"time"
)

// A transcript passes on the output of the agent, and knows when it was last written.
type transcript struct {
	out io.Writer

	mu   sync.Mutex
	last time.Time
}

// Write passes on a part of the output. Parts of several writers do not mix.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	return t.out.Write(p)
}

// awaitQuiet waits until nothing was written for the time, so that the next text is not lost
// between lines of the agent.
func (t *transcript) awaitQuiet(ctx context.Context, quiet time.Duration) error {
	for {
		t.mu.Lock()
		rest := quiet - time.Since(t.last)
		t.mu.Unlock()
		if rest <= 0 {
			return nil
		}
		if err := pause(ctx, rest); err != nil {
			return err
		}
	}
}

// pause waits for the time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
