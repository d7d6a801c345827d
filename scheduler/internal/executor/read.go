package executor

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Reads has the abandoned calls of one descriptor's Retrieve that are still running. No other
// call begins while one of them has taken longer than the timeout, or while there are maxHung
// of them. The zero value is ready.
type Reads struct {
	mu   sync.Mutex // guards hung and the fields of the calls
	hung map[*readCall]struct{}
}

// check returns the reason why no call may begin; nil: one may.
func (r *Reads) check(timeout time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.hung {
		age := time.Since(c.begun)
		if age >= timeout {
			return fmt.Errorf("%w: a call of Retrieve was abandoned and has been running for %s", ErrNoAnswer, Seconds(age.Truncate(time.Second)))
		}
	}
	if n := len(r.hung); n >= maxHung {
		return fmt.Errorf("%w: %d calls of Retrieve were abandoned and still run", ErrStalled, n)
	}
	return nil
}

// A readCall has one goroutine that runs it and one that waits for it.
type readCall struct {
	reads *Reads
	begun time.Time

	// Guarded by reads.mu.
	ended, abandoned bool
}

// Read calls read on another goroutine and returns its result. The context of read ends after
// timeout. If read does not return soon after, the call is abandoned: Read returns
// ErrNoAnswer, and late is called when read returns.
func Read[T any](ctx context.Context, reads *Reads, timeout time.Duration, read func(context.Context) (T, error), late func(took time.Duration)) (T, error) {
	type result struct {
		value T
		err   error
	}
	if err := reads.check(timeout); err != nil {
		return *new(T), err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	c := &readCall{reads: reads, begun: time.Now()}
	done := make(chan result, 1)
	go func() {
		defer cancel()
		value, err := read(ctx)
		if c.end() {
			late(time.Since(c.begun))
			return
		}
		done <- result{value, err}
	}()
	select {
	case out := <-done:
		return out.value, out.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace(timeout))
	defer timer.Stop()
	select {
	case out := <-done:
		return out.value, out.err
	case <-timer.C:
	}
	if !c.abandon() {
		out := <-done
		return out.value, out.err
	}
	if took := time.Since(c.begun); took < timeout {
		return *new(T), fmt.Errorf("%w after %s; the caller stopped waiting", ErrNoAnswer, Seconds(took))
	}
	return *new(T), fmt.Errorf("%w in %s", ErrNoAnswer, Seconds(timeout))
}

// abandon records that the caller no longer waits. It returns false if the call has returned.
func (c *readCall) abandon() bool {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	if c.ended {
		return false
	}
	c.abandoned = true
	if c.reads.hung == nil {
		c.reads.hung = map[*readCall]struct{}{}
	}
	c.reads.hung[c] = struct{}{}
	return true
}

// end records that the call has returned, and reports whether it was abandoned.
func (c *readCall) end() (abandoned bool) {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	c.ended = true
	delete(c.reads.hung, c)
	return c.abandoned
}
