// Package retry has the schedule of failed values: the time of the next attempt of each,
// and which of them are due. A [Schedule] knows only keys, policies and times, and has no clock.
// [Failed] selects the values of a graph that can be tried again.
//
// An attempt that fails again doubles the delay of the next one. A value that fails in a
// run which neither declares nor retries it, such as a resync, keeps its schedule: a resync
// neither ends the retries of a value nor adds to them.
//
// [Flaps] decide how long a value that somebody else removes or changes again and again waits before it is put back.
// [Delays] apply that to a graph.
package retry

import (
	"cmp"
	"slices"
	"time"
)

// A Policy determines when a failed value is tried again. The scheduler documents the
// fields, see scheduler.RetryPolicy.
type Policy struct {
	Never  bool
	Period time.Duration
	Max    time.Duration
	Count  int
}

// delay returns the delay before an attempt, counted from 1.
func (p Policy) delay(attempt int) time.Duration {
	d, most := p.Period, p.Max
	if d <= 0 {
		d = time.Second
	}
	if most <= 0 {
		most = time.Minute
	}
	for ; attempt > 1 && d < most; attempt-- {
		d *= 2
	}
	return min(d, most)
}

// A Schedule has the retries of failed values. One goroutine owns it.
type Schedule struct {
	policy Policy // of values without their own
	byKey  map[string]*Entry
	over   *Entry    // the last one without a next attempt: thousands of values may have it, and nobody changes it
	next   time.Time // no retry is due before
	held   bool      // Due has left out a key
}

// An Entry is the retry of one value.
type Entry struct {
	Attempt int    // the next one, from 1
	Txn     uint64 // the transaction of the first failure

	policy    Policy
	due       time.Time
	delay     time.Duration
	pause     time.Duration // delay and jitter: between the end of the run that failed and due
	by        uint64        // the run that failed and has not ended, plus 1; 0: none
	over      bool          // there is no next attempt
	postponed bool          // the next attempt is no retry
}

// New returns an empty schedule. policy is for the values without their own.
func New(policy Policy) *Schedule { return &Schedule{policy: policy, byKey: map[string]*Entry{}} }

// A Failure describes a failed verb, and the run in which it failed.
type Failure struct {
	Final    bool // a retry cannot fix the error
	Concerns bool // the run declares or retries the value
	Retries  bool // the run is a retry
	Txn      uint64
	Now      time.Time
	// Jitter is the relative extension of the delay. All failures of a run have the same,
	// so that they are retried together.
	Jitter float64
	// Policy is for a value without an earlier retry that continues; zero: that of the schedule.
	Policy Policy
}

// Failed plans the next attempt after a failure. It becomes due only after Ended.
func (s *Schedule) Failed(key string, f Failure) {
	last := s.byKey[key]
	if last != nil && !f.Concerns {
		last.over = last.over || f.Final
		return
	}
	next := &Entry{policy: cmp.Or(f.Policy, s.policy), Attempt: 1, Txn: f.Txn}
	if f.Retries && last != nil && !last.over {
		next.policy, next.Txn = last.policy, last.Txn
		if !last.postponed {
			next.Attempt = last.Attempt + 1
		}
	}
	next.by = f.Txn + 1
	s.plan(key, next, f)
}

// Ended says that a run has ended in which a verb of key failed. Until then the failure is still to be read back, so an attempt
// would have to wait. In a cycle it would make that run create and delete the other members once more; with slow verbs and short
// delays, it would never end.
func (s *Schedule) Ended(key string, run uint64, now time.Time) {
	if e := s.byKey[key]; e != nil && e.by == run+1 {
		e.by, e.due = 0, now.Add(e.pause)
		s.put(key, e)
	}
}

// Resume continues the retries of a value after its abandoned verb has failed at last. The
// attempt is the same, because the abandoned call was not yet counted as one.
func (s *Schedule) Resume(key string, f Failure) {
	next := &Entry{policy: cmp.Or(f.Policy, s.policy), Attempt: 1, Txn: f.Txn}
	if last := s.byKey[key]; last != nil {
		*next = *last
		next.by = 0
	}
	s.plan(key, next, f)
}

// Postpone plans an attempt after a pause, whatever the policy says. It is no retry, because nothing has
// failed: if it fails, the policy holds from the first retry on.
func (s *Schedule) Postpone(key string, pause time.Duration, now time.Time, txn uint64) {
	policy := s.policy
	if last := s.byKey[key]; last != nil {
		policy = last.policy
	}
	s.put(key, &Entry{Attempt: 1, Txn: txn, policy: policy, due: now.Add(pause), delay: pause, postponed: true})
}

// plan computes the time of the next attempt, if there is one.
func (s *Schedule) plan(key string, next *Entry, f Failure) {
	p := next.policy
	next.over = p.Never || f.Final || p.Count > 0 && next.Attempt > p.Count
	if next.over {
		if next.by = 0; s.over == nil || *next != *s.over {
			s.over = next
		}
		s.byKey[key] = s.over
		return
	}
	next.delay = p.delay(next.Attempt)
	next.pause = next.delay + time.Duration(f.Jitter*float64(next.delay))
	next.due = f.Now.Add(next.pause)
	s.put(key, next)
}

// put stores the entry of key in place of an earlier one, and keeps the time of the
// earliest attempt of all.
func (s *Schedule) put(key string, e *Entry) {
	if !e.over && e.by == 0 && (s.next.IsZero() || e.due.Before(s.next)) {
		s.next = e.due
	}
	s.byKey[key] = e
}

// Drop forgets the retry of a value.
func (s *Schedule) Drop(key string) { delete(s.byKey, key) }

// Policies returns the policies of the values that have retries, or had them until they were over.
func (s *Schedule) Policies() map[string]Policy {
	out := make(map[string]Policy, len(s.byKey))
	for key, e := range s.byKey {
		out[key] = e.policy
	}
	return out
}

// Pending returns the scheduled retry of key, or nil.
func (s *Schedule) Pending(key string) *Entry {
	if e := s.byKey[key]; e != nil && !e.over {
		return e
	}
	return nil
}

// Wait returns the time until a retry may be due; an hour if there is none.
func (s *Schedule) Wait(now time.Time) time.Duration {
	if len(s.byKey) == 0 || s.next.IsZero() {
		return time.Hour
	}
	return max(0, s.next.Sub(now))
}

// Next returns the time before which no retry is due.
func (s *Schedule) Next() time.Time { return s.next }

// Due returns the keys that are due, sorted. They include those that are due within a tenth
// of their delay, so that failures of one moment are retried together. Keys for which mustWait
// returns true are left out; they are due again after Release. The others are due again after their delay, if no attempt
// of them succeeds or fails meanwhile: so no value is tried more often than its policy says.
func (s *Schedule) Due(now time.Time, mustWait func(key string) bool) (keys []string) {
	s.next = now.Add(time.Hour)
	for key, e := range s.byKey {
		switch {
		case e.over || e.by > 0:
			continue
		case e.due.After(now.Add(e.delay / 10)):
		case mustWait(key):
			s.held = true
			continue
		default:
			keys = append(keys, key)
			e.due = now.Add(e.delay)
		}
		if e.due.Before(s.next) {
			s.next = e.due
		}
	}
	slices.Sort(keys)
	return keys
}

// Release says that keys which had to wait at the last Due may be due now.
func (s *Schedule) Release(now time.Time) {
	if s.held {
		s.held, s.next = false, now
	}
}
