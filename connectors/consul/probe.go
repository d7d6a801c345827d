package consul

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
)

// errIndexBack withdraws a question that waits for an index which may be years away.
var errIndexBack = errors.New("consul's index went back")

// probe makes sure, from time to time, that the server is there, has a leader, and has
// told of all changes. It ends the watch when that is not so.
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

// hears tells that a probe failed for lack of time only, while a listing went on to
// arrive: the line is slow, and the server lives.
func (c *client) hears(since time.Time, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && c.heard.After(since)
}

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

// An asked is a question, or none if its index is 0.
type asked struct {
	number   uint64 // no two have the same
	after    uint64 // the index that Consul is to go beyond
	empty    bool   // the last answer had no keys
	withdraw context.CancelCauseFunc
}

func (w *waiting) begin(after uint64, empty bool, withdraw context.CancelCauseFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = asked{number: w.now.number + 1, after: after, empty: empty, withdraw: withdraw}
}

func (w *waiting) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now.after, w.now.withdraw = 0, nil
}

func (w *waiting) get() asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// A prober compares what the store says over another connection with what the waiting
// question has been told.
type prober struct {
	table uint64 // the table's index when last nothing was missing; 0: never yet
}

// check costs Consul a look at one key while nobody writes any key, and a walk through
// the keys of the prefix otherwise. It sends the names of the topmost folders only.
func (p *prober) check(ctx context.Context, w *watch) error {
	q := w.waiting.get()
	if q.after == 0 {
		return nil
	}
	now, err := w.client.standing(ctx, storeKey(w.prefix), p.table)
	var refused api.StatusError
	if errors.As(err, &refused) {
		return nil // the token may not ask; whether the server lives is known
	}
	if err != nil {
		return err
	}
	verdict := judge(q, now, p.table)
	if verdict == upToDate {
		p.table = now.table
		return nil
	}
	if !w.stays(ctx, q) {
		return nil
	}
	if verdict == wentAway {
		q.withdraw(fmt.Errorf("%w: the question waits for more than %d", errIndexBack, q.after))
		return nil
	}
	return fmt.Errorf("%w: the store is at index %d, and the last answer was of %d", ErrSilent, now.prefix, q.after)
}

// stays tells that a question is still not answered after some time.
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

// A standing is where a store is.
type standing struct {
	table  uint64 // index of the last change of any key of the datacenter
	prefix uint64 // that of the last change under the prefix; 0: not asked for
	empty  bool   // no key is under the prefix
}

// standing asks for the prefix only if the table is not where it was.
func (c *client) standing(ctx context.Context, prefix string, was uint64) (s standing, err error) {
	r, err := c.begun(ctx)
	if err != nil {
		return s, err
	}
	defer r.end()
	// Of a key that is not there Consul tells the index of the table. One that is there
	// tells its own, which is no more than that.
	_, about, err := c.api.KV().Get(prefix+absentKey, r.read())
	if err != nil {
		return s, r.explain(err)
	}
	if s.table = about.LastIndex; s.table == was {
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

// A verdict is what follows from where a store is for a question that waits.
type verdict int

const (
	upToDate verdict = iota // nothing is missing
	behind                  // the question must be answered by now
	wentAway                // the index went back: the question would wait for too long
)

// judge compares a question with where the store is. was is the table's index when
// last nothing was missing.
//
// The index of a prefix without keys means nothing: it is that of the table. The index
// of a prefix goes back without a word when Consul forgets the latest deletion.
func judge(q asked, now standing, was uint64) verdict {
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
