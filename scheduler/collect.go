package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// reads are the abandoned calls of a descriptor's Retrieve that still run. No other begins
// while one of them has taken too long, or while there are mostHung of them.
type reads struct {
	mu   sync.Mutex // guards hung, and the calls
	hung map[*call]struct{}
}

// check says why no Retrieve may begin; nil: one may.
func (r *reads) check(timeout time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.hung {
		if age := time.Since(c.begun); age >= timeout {
			return fmt.Errorf("%w: a call of Retrieve was abandoned and has been running for %s", ErrNoAnswer, seconds(age.Truncate(time.Second)))
		}
	}
	if n := len(r.hung); n >= mostHung {
		return fmt.Errorf("%w: %d calls of Retrieve were abandoned and still run", ErrStalled, n)
	}
	return nil
}

// A call of Retrieve is waited for by one goroutine and runs on another.
type call struct {
	reads *reads
	begun time.Time
	done  chan collected

	// Guarded by reads.mu.
	ended, abandoned bool
}

// collected is what a call of Retrieve has shown.
type collected struct {
	items []item
	found map[string]bool
	err   error
}

// collect reads back what stands of the values that rd is about; found are the keys. A call
// that does not return in time is abandoned. When it returns, rd's descriptor is read back again.
func (s *Scheduler) collect(ctx context.Context, rd reading, ws []wanted) (items []item, found map[string]bool, err error) {
	if err := rd.d.reads.check(s.opts.VerbTimeout); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.VerbTimeout)
	c := &call{reads: &rd.d.reads, begun: time.Now(), done: make(chan collected, 1)}
	go func() {
		defer cancel()
		items, found, err := s.read(ctx, rd, ws)
		if c.end() {
			s.log.Info("an abandoned call of Retrieve has returned", "descriptor", rd.d.name, "took", time.Since(c.begun))
			s.inbox.refresh.add(s.inbox, []string{rd.d.name})
			return
		}
		c.done <- collected{items, found, err}
	}()
	select {
	case out := <-c.done:
		return out.items, out.found, out.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace(s.opts.VerbTimeout))
	defer timer.Stop()
	select {
	case out := <-c.done:
		return out.items, out.found, out.err
	case <-timer.C:
	}
	if !c.abandon() {
		out := <-c.done
		return out.items, out.found, out.err
	}
	if time.Since(c.begun) < s.opts.VerbTimeout {
		return nil, nil, fmt.Errorf("%w after %s, when nobody waited any more", ErrNoAnswer, seconds(time.Since(c.begun)))
	}
	return nil, nil, fmt.Errorf("%w in %s", ErrNoAnswer, seconds(s.opts.VerbTimeout))
}

// abandon says that nobody waits for c any more; false: it has returned.
func (c *call) abandon() bool {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	if c.ended {
		return false
	}
	c.abandoned = true
	if c.reads.hung == nil {
		c.reads.hung = map[*call]struct{}{}
	}
	c.reads.hung[c] = struct{}{}
	return true
}

// end says that c has returned, and tells whether it was abandoned before.
func (c *call) end() (abandoned bool) {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	c.ended = true
	delete(c.reads.hung, c)
	return c.abandoned
}
