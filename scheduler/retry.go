package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/retry"
)

// retriable reports whether a retry may fix err.
func retriable(err error) bool {
	var t terminal
	return !errors.As(err, &t) && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrUnimplemented) && !errors.Is(err, ErrNoAnswer)
}

// scheduleRetry plans the next attempt for a node that failed in r.
func (s *Scheduler) scheduleRetry(r *run, n *graph.Node, err error) {
	f := s.failure(r, err)
	f.Concerns = r.concerns(n)
	if f.Concerns {
		f.Policy = retry.Policy(r.policy)
	}
	s.retries.Failed(n.Key(), f)
}

// resumeRetry continues the retries of n after its abandoned verb has returned.
func (s *Scheduler) resumeRetry(r *run, n *graph.Node, err error) {
	if n.State() == graph.Failed { // else there is no error, or a newer desired value
		s.retries.Resume(n.Key(), s.failure(r, err))
	}
}

// failure describes err for the schedule. The policy is the one for values that r does not
// declare.
func (s *Scheduler) failure(r *run, err error) retry.Failure {
	return retry.Failure{
		Final: !retriable(err), Retries: r.retry, Txn: r.rec.Seq,
		Now: time.Now(), Jitter: r.jitter, Policy: retry.Policy(s.opts.Retry),
	}
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
	due := s.retries.Next()
	keys := s.retries.Due(time.Now())
	if len(keys) > 0 {
		s.counters.Waited(uint8(RetryFailed), due)
	}
	s.retry(ctx, keys, s.opts.Retry, nil)
}

// retry tries keys again. The policy is for keys without scheduled retries. done, if it is
// not nil, gets the record; nil if there are no keys.
func (s *Scheduler) retry(ctx context.Context, keys []string, policy RetryPolicy, done func(*Record)) {
	if len(keys) == 0 {
		if done != nil {
			done(nil)
		}
		return
	}
	r := s.begin(RetryFailed)
	r.done = done
	r.retry, r.policy, r.keys = true, policy, map[string]bool{}
	for _, key := range keys {
		r.keys[key] = true
		again := Change{Key: key}
		if v := s.graph.Node(key).Desired(); v != nil {
			again.Value = &Value{v, s}
		}
		r.rec.Values = append(r.rec.Values, again)
		if last := s.retries.Pending(key); last != nil {
			r.rec.RetryOf, r.rec.Attempt = last.Txn, last.Attempt
		} else if st := s.statuses.At(s.graph.Node(key).Slot); st != nil && r.rec.Attempt == 0 {
			r.rec.RetryOf, r.rec.Attempt = uint64(st.txn-1), 1
		}
		s.graph.Retry(key)
	}
	s.finish(ctx, r)
}

// ErrNothingFailed is returned by RetryKey if no value has failed.
var ErrNothingFailed = errors.New("the value has not failed")

// RetryKey tries the value under key and its derived values again, if they have failed: at
// once, even after a Terminal error. It waits for the end of the
// transaction. The error is a *TxnError if a verb fails again; then policy applies, except
// for values that are RETRYING and keep their own policy. A zero policy means
// Options.Retry. A value with a running abandoned verb is not tried; see ErrNoAnswer.
func (s *Scheduler) RetryKey(ctx context.Context, key string, policy RetryPolicy) (*Record, error) {
	type outcome struct {
		rec  *Record
		hung bool
	}
	outcomes := make(chan outcome, 1)
	err := s.ask(ctx, func(run context.Context) {
		n := s.graph.Node(key)
		hung := n != nil && n.Hung()
		s.retry(run, s.failedBelow(key), cmp.Or(policy, s.opts.Retry), func(rec *Record) { outcomes <- outcome{rec, hung} })
	})
	if err != nil {
		return nil, err
	}
	var rec *Record
	var hung bool
	select {
	case out := <-outcomes:
		rec, hung = out.rec, out.hung
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the scheduler to end: %w", ctx.Err())
	}
	switch {
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
	for _, d := range s.registry.Named(names) {
		for _, n := range s.graph.Of(d) {
			if n.State() == graph.Failed && !n.Hung() {
				keys = append(keys, n.Key())
			}
		}
	}
	slices.Sort(keys)
	return keys
}
