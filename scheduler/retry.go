package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// retries has the retries of failed values.
type retries struct {
	byKey map[string]*retry
	next  time.Time // no retry is due before
}

type retry struct {
	policy  RetryPolicy
	attempt int // the next one, from 1
	due     time.Time
	delay   time.Duration
	txn     uint64 // the transaction of the first failure
	over    bool   // there is no next attempt
}

// pending returns the scheduled retry of key, or nil.
func (rs *retries) pending(key string) *retry {
	if r := rs.byKey[key]; r != nil && !r.over {
		return r
	}
	return nil
}

// put replaces the retry of a key.
func (rs *retries) put(key string, r *retry) {
	if !r.over && (rs.next.IsZero() || r.due.Before(rs.next)) {
		rs.next = r.due
	}
	rs.byKey[key] = r
}

func (rs *retries) drop(key string) { delete(rs.byKey, key) }

// wait returns the time until a retry may be due.
func (rs *retries) wait() time.Duration {
	if len(rs.byKey) == 0 || rs.next.IsZero() {
		return time.Hour
	}
	return max(0, time.Until(rs.next))
}

// due returns the keys that are due, sorted, and updates the next time.
func (rs *retries) due(now time.Time) (keys []string) {
	rs.next = now.Add(time.Hour)
	for key, r := range rs.byKey {
		if r.over {
			continue
		}
		if !r.due.After(now.Add(r.delay / 10)) { // including those that are due soon
			keys = append(keys, key)
		} else if r.due.Before(rs.next) {
			rs.next = r.due
		}
	}
	slices.Sort(keys)
	return keys
}

// retriable reports whether a retry may fix err.
func retriable(err error) bool {
	var t terminal
	return !errors.As(err, &t) && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrUnimplemented) && !errors.Is(err, ErrNoAnswer)
}

// scheduleRetry plans the next attempt for a node that failed in r. A run that did not
// declare the value, such as a resync, neither ends its retries nor adds to them.
func (s *Scheduler) scheduleRetry(r *run, n *graph.Node, err error) {
	last, own := s.retries.byKey[n.Key()], r.concerns(n)
	if last != nil && !own {
		last.over = last.over || !retriable(err)
		return
	}
	next := &retry{policy: s.opts.Retry, attempt: 1, txn: r.rec.Seq}
	if own {
		next.policy = r.policy
	}
	if r.retry && last != nil && !last.over {
		next.policy, next.attempt, next.txn = last.policy, last.attempt+1, last.txn
	}
	next.plan(err, r.jitter)
	s.retries.put(n.Key(), next)
}

// plan computes the time of the next attempt after err, if there is one.
func (r *retry) plan(err error, jitter float64) {
	p := r.policy
	r.over = p.Never || !retriable(err) || p.Count > 0 && r.attempt > p.Count
	if !r.over {
		r.delay = p.delay(r.attempt)
		r.due = time.Now().Add(r.delay + time.Duration(jitter*float64(r.delay)))
	}
}

// resume continues the retries of n after its abandoned verb has returned. The policy is
// for a value without retries.
func (rs *retries) resume(r *run, n *graph.Node, err error, policy RetryPolicy) {
	if n.State() != graph.Failed {
		return // no error, or a newer desired value
	}
	next := &retry{policy: policy, attempt: 1, txn: r.rec.Seq}
	if last := rs.byKey[n.Key()]; last != nil {
		*next = *last
	}
	next.plan(err, r.jitter)
	rs.put(n.Key(), next)
}

// concerns reports whether r declares or retries n or its base.
func (r *run) concerns(n *graph.Node) bool {
	if r.keys == nil {
		r.keys = map[string]bool{}
		for _, c := range r.rec.Values {
			r.keys[c.Key] = r.rec.Type == Northbound
		}
	}
	for ; n != nil; n = n.Base() {
		if r.keys[n.Key()] || r.rec.Replace && n.Desired() == nil && n.Base() == nil {
			return true
		}
	}
	return false
}

// retryDue runs the retries that are due.
func (s *Scheduler) retryDue(ctx context.Context) {
	s.retry(ctx, s.retries.due(time.Now()), s.opts.Retry)
}

// retry tries keys again. The policy is for keys without scheduled retries.
func (s *Scheduler) retry(ctx context.Context, keys []string, policy RetryPolicy) *Record {
	if len(keys) == 0 {
		return nil
	}
	r := s.begin(RetryFailed)
	r.retry, r.policy, r.keys = true, policy, map[string]bool{}
	for _, key := range keys {
		r.keys[key] = true
		if last := s.retries.pending(key); last != nil {
			r.rec.RetryOf, r.rec.Attempt = last.txn, last.attempt
		} else if st := s.statuses.At(s.graph.Node(key).Slot); st != nil && r.rec.Attempt == 0 {
			r.rec.RetryOf, r.rec.Attempt = uint64(st.txn-1), 1
		}
		s.graph.Retry(key)
	}
	return s.finish(ctx, r)
}

// ErrNothingFailed is returned by RetryKey if no value has failed.
var ErrNothingFailed = errors.New("the value has not failed")

// RetryKey tries the value under key and its derived values again, if they have failed: at
// once, even after a Terminal error. It waits for the end of the
// transaction. The error is a *TxnError if a verb fails again; then policy applies, except
// for values that are RETRYING and keep their own policy. A zero policy means
// Options.Retry. A value with a running abandoned verb is not tried; see ErrNoAnswer.
func (s *Scheduler) RetryKey(ctx context.Context, key string, policy RetryPolicy) (*Record, error) {
	var rec *Record
	hung := false
	err := s.runInLoop(ctx, func(run context.Context) {
		n := s.graph.Node(key)
		hung = n != nil && n.Hung()
		rec = s.retry(run, s.failedBelow(key), cmp.Or(policy, s.opts.Retry))
	})
	switch {
	case err != nil:
		return nil, err
	case rec == nil && hung:
		return nil, fmt.Errorf("%s: %w: the value is retried when the verb returns", key, ErrNoAnswer)
	case rec == nil:
		return nil, fmt.Errorf("%s: %w", key, ErrNothingFailed)
	}
	return rec, rec.Err()
}

// failedBelow returns the failed keys among key and its derived values.
func (s *Scheduler) failedBelow(key string) []string {
	return slices.DeleteFunc(s.failedOf(nil), func(failed string) bool {
		n := s.graph.Node(failed)
		for n != nil && n.Key() != key {
			n = n.Base()
		}
		return n == nil
	})
}

// failedOf returns the failed keys of the named descriptors; nil means all.
func (s *Scheduler) failedOf(names map[string]bool) (keys []string) {
	for _, d := range s.registry.named(names) {
		for _, n := range s.graph.Of(d) {
			if n.State() == graph.Failed && !n.Hung() {
				keys = append(keys, n.Key())
			}
		}
	}
	slices.Sort(keys)
	return keys
}
