package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/retry"
)

// scheduleRetry plans the next attempt for a node that failed in r. A transaction that is undone has none. The
// values that the undoing restores are those of other transactions, and keep their retries.
func (s *Scheduler) scheduleRetry(r *run, n *graph.Node, err error) {
	f := s.failure(r, err)
	f.Policy = r.earlier[n.Key()]
	f.Concerns = r.scope.Concerns(n) && !r.reverting
	switch {
	case f.Concerns && r.rec.Revert:
		s.retries.Drop(n.Key())
		return
	case f.Concerns:
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

// failure describes err for the schedule.
func (s *Scheduler) failure(r *run, err error) retry.Failure {
	return retry.Failure{
		Final: !kind.Retriable(err), Retries: r.retries(), Txn: r.rec.Seq,
		Now: time.Now(), Jitter: r.jitter,
	}
}

// retryDue runs the retries that are due.
func (s *Scheduler) retryDue(ctx context.Context) {
	due := s.retries.Next()
	keys := s.retries.Due(time.Now(), s.mustWaitForRetry)
	if len(keys) > 0 {
		s.counters.Waited(uint8(RetryFailed), due)
	}
	s.retry(ctx, keys, nil)
}

// mustWaitForRetry reports whether a verb of a key is still running, or waits for its turn, or nobody knows what is there. The
// verb is the attempt.
func (s *Scheduler) mustWaitForRetry(key string) bool {
	n := s.graph.Node(key)
	return n != nil && (n.Hung() || n.Held() || n.Unknown())
}

// retry tries keys again. Keys without scheduled retries get Options.Retry. done, if it is not
// nil, gets the record; nil if there are no keys.
func (s *Scheduler) retry(ctx context.Context, keys []string, done func(*Record)) {
	if len(keys) == 0 {
		if done != nil {
			done(nil)
		}
		return
	}
	r := s.begin(RetryFailed)
	r.done = done
	r.quiet = true
	for _, key := range keys {
		again := Change{Key: key}
		if v := s.graph.Node(key).Desired(); v != nil {
			again.Value = &Value{v, s}
		}
		r.rec.Values = append(r.rec.Values, again)
		if last := s.retries.Pending(key); last != nil {
			r.rec.RetryOf, r.rec.Attempt = last.Txn, last.Attempt
		} else if st := s.statuses.At(s.graph.Node(key).Slot); st != nil && r.rec.Attempt == 0 {
			r.rec.RetryOf, r.rec.Attempt = uint64(st.Txn-1), 1
		}
		s.graph.Retry(key)
	}
	s.finish(ctx, r)
}

// Retry tries the failed values under keys (none: all keys) again at once, without waiting for
// their back-off, and even after a Terminal error. Values that are derived from them are tried
// too. It waits for the end of the transaction.
//
// The record is nil if none of the values has failed. The error is a *TxnError if verbs fail
// again; then a value keeps its own RetryPolicy if it is RETRYING, and otherwise gets
// Options.Retry. A value with a running abandoned verb is not tried, because it is retried when
// the verb returns; if there is no other one, the error is ErrNoAnswer.
func (s *Scheduler) Retry(ctx context.Context, keys ...string) (*Record, error) {
	type outcome struct {
		rec  *Record
		hung string // the key of a value with a running abandoned verb
	}
	outcomes := make(chan outcome, 1)
	err := s.ask(ctx, func(run context.Context) {
		hung := ""
		for _, key := range keys {
			if n := s.graph.Node(key); n != nil && n.Hung() {
				hung = key
			}
		}
		s.retry(run, retry.Failed(s.registry.Nodes(s.graph), keys), func(rec *Record) { outcomes <- outcome{rec, hung} })
	})
	if err != nil {
		return nil, err
	}
	select {
	case out := <-outcomes:
		switch {
		case out.rec != nil:
			return out.rec, out.rec.Err()
		case out.hung != "":
			return nil, fmt.Errorf("%s: %w: the value is retried when the verb returns", out.hung, ErrNoAnswer)
		}
		return nil, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the scheduler to end: %w", ctx.Err())
	}
}
