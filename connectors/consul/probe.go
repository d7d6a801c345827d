package consul

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
)

// errIndexBack cancels a question that waits for an index which Consul would reach only
// after years.
var errIndexBack = errors.New("consul's index went back")

// probe regularly checks that the server is reachable, has a leader, and has reported all
// changes. It ends the watch when a check fails.
func (w *watch) probe(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(w.client.cfg.ProbeInterval)
	defer tick.Stop()
	var p prober
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		begun := time.Now()
		err := w.client.leader(ctx)
		if err == nil {
			err = p.check(ctx, w)
		}
		if err != nil && !w.client.hears(begun, err) {
			stop(err)
			return
		}
	}
}

// hears reports whether a probe only timed out while a listing was still arriving. In this
// case the line is slow and the server is alive.
func (c *client) hears(since time.Time, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && c.heard.After(since)
}

// leader returns nil if the servers have a leader. Without one, Consul keeps questions
// waiting and answers none.
func (c *client) leader(ctx context.Context) error {
	r, err := c.begun(ctx)
	if err != nil {
		return err
	}
	defer r.end()
	leader, err := c.api.Status().LeaderWithQueryOptions(r.read())
	if err == nil && leader == "" {
		return ErrNoLeader
	}
	return r.explain(err)
}

// A waiting is the question that Consul has not answered yet, as probes see it.
type waiting struct {
	mu  sync.Mutex // guards now
	now asked
}

// An asked is an open question; an index of 0 means that there is none.
type asked struct {
	number   uint64 // unique
	after    uint64 // the index that Consul must exceed before it answers
	empty    bool   // the last answer had no keys
	withdraw context.CancelCauseFunc
}

// begin notes a question that waits, and the function that withdraws it.
func (w *waiting) begin(after uint64, empty bool, withdraw context.CancelCauseFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = asked{number: w.now.number + 1, after: after, empty: empty, withdraw: withdraw}
}

// end notes that the question was answered.
func (w *waiting) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now.after, w.now.withdraw = 0, nil
}

// get returns the question that waits, if any.
func (w *waiting) get() asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// A prober compares the state of the store, read over another connection, with the state
// known to the waiting question.
type prober struct {
	table uint64 // the table's index when nothing was missing last; 0: never yet
}

// check reads one key while no key changes at all, and otherwise makes Consul walk through
// the keys of the prefix. Consul sends only the names of the topmost folders.
func (p *prober) check(ctx context.Context, w *watch) error {
	q := w.waiting.get()
	if q.after == 0 {
		return nil
	}
	now, err := w.client.indexes(ctx, storeKey(w.prefix), p.table)
	if _, ok := errors.AsType[api.StatusError](err); ok {
		return nil // for example, the token may not read; the answer proves that the server is alive
	}
	if err != nil {
		return err
	}
	result := p.judge(q, now)
	if result == upToDate || !w.stays(ctx, q) {
		return nil
	}
	if result == wentAway {
		q.withdraw(fmt.Errorf("%w: the question waits for more than %d", errIndexBack, q.after))
		return nil
	}
	return fmt.Errorf("%w: the store is at index %d, and the last answer was of %d", ErrSilent, now.prefix, q.after)
}

// judge compares a question with the store's current index, and keeps the table's index for the next probe.
// One that went back forgets it: a store that has restored a snapshot may stay below it for years, and each
// probe would withdraw the question again.
func (p *prober) judge(q asked, now indexes) comparison {
	result := compare(q, now, p.table)
	switch result {
	case upToDate:
		p.table = now.table
	case wentAway:
		p.table = 0
	case behind:
	}
	return result
}

// stays reports whether a question is still not answered after some time.
func (w *watch) stays(ctx context.Context, q asked) bool {
	timer := time.NewTimer(min(w.client.cfg.ProbeInterval, w.client.cfg.OperationTimeout) / 2)
	defer timer.Stop()
	select {
	case <-timer.C:
		now := w.waiting.get()
		return now.number == q.number && now.after != 0
	case <-ctx.Done():
		return false
	}
}

// indexes are those of a store, and of the watched prefix in it.
type indexes struct {
	table  uint64 // index of the last change of any key of the datacenter
	prefix uint64 // index of the last change under the prefix; 0: not requested
	empty  bool   // no key is under the prefix
}

// indexes reads the prefix's index only if the table's index has changed.
func (c *client) indexes(ctx context.Context, prefix string, was uint64) (s indexes, err error) {
	r, err := c.begun(ctx)
	if err != nil {
		return s, err
	}
	defer r.end()
	// For an absent key Consul returns the table's index. For an existing key it returns
	// the key's own index, which is not larger.
	_, about, err := c.api.KV().Get(prefix+absentKey, r.read())
	if err != nil {
		return s, r.explain(err)
	}
	s.table = about.LastIndex
	if s.table == was {
		return s, nil
	}
	names, about, err := c.api.KV().Keys(prefix, "/", r.read())
	if err != nil {
		return s, r.explain(err)
	}
	s.prefix, s.empty = about.LastIndex, len(names) == 0
	return s, nil
}

// absentKey is the name of a key that nobody writes.
const absentKey = ".keyplane-probe"

// A comparison is the result of comparing a waiting question with the store's index.
type comparison int

const (
	upToDate comparison = iota // nothing is missing
	behind                     // the question should have been answered already
	wentAway                   // the index went back: the question would wait for too long
)

// compare relates a question with the store's current index. was is the table's index when
// nothing was missing last.
//
// The index of a prefix without keys is not usable: it is the table's index. The index of
// a prefix goes back silently when Consul forgets the latest deletion.
func compare(q asked, now indexes, was uint64) comparison {
	switch {
	case now.table == was:
		return upToDate
	case now.table < q.after || now.table < was:
		return wentAway
	case now.empty && q.empty:
		return upToDate
	case now.prefix > q.after:
		return behind
	case now.prefix < q.after:
		return wentAway
	}
	return upToDate
}
