package scheduler

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// ErrContested is the error of a value that somebody else removes repeatedly after its
// creation.
var ErrContested = errors.New("somebody else removes it repeatedly")

// A value is contested after contestedAfter losses within contestedWithin. From then on
// there is a pause before it is created again. Each further loss doubles the pause. A
// value that then exists for contestedWithin after its pause is no longer contested.
const (
	contestedAfter  = 5
	contestedWithin = time.Minute
	firstPause      = time.Second
	longestPause    = time.Minute
)

// contests has the values that vanished recently. It knows only keys and times. The zero
// value is empty.
type contests struct {
	byKey map[string]*contest
	swept time.Time
}

type contest struct {
	losses []time.Time   // of the last minute, while it is not contested
	last   time.Time     // time of the last loss
	pause  time.Duration // before the next creation; 0: not contested
}

// lost records that a value vanished by itself. pause is the time before it is created
// again; begun reports that it is now contested.
func (cs *contests) lost(key string, now time.Time) (pause time.Duration, begun bool) {
	cs.sweep(now)
	c := cs.byKey[key]
	if c == nil || c.over(now) {
		c = &contest{}
		cs.byKey[key] = c
	}
	c.last = now
	if c.pause > 0 {
		c.pause = min(2*c.pause, longestPause)
		return c.pause, false
	}
	for len(c.losses) > 0 && now.Sub(c.losses[0]) >= contestedWithin {
		c.losses = c.losses[1:]
	}
	c.losses = append(c.losses, now)
	if len(c.losses) < contestedAfter {
		return 0, false
	}
	*c = contest{last: now, pause: firstPause}
	return c.pause, true
}

// forget ends the contest of a value that the agent itself has removed.
func (cs *contests) forget(key string) { delete(cs.byKey, key) }

// endContests ends the contests of the values that changes remove.
func (s *Scheduler) endContests(changes []Change) {
	for _, c := range changes {
		if c.Value == nil && (c.Err == nil || s.graph.Wants(c.Key)) {
			s.contests.forget(c.Key)
		}
	}
}

// over reports whether the value has existed long enough since its last loss.
func (c *contest) over(now time.Time) bool { return now.Sub(c.last) >= c.pause+contestedWithin }

// sweep removes old contests, at most once a minute.
func (cs *contests) sweep(now time.Time) {
	if cs.byKey == nil {
		cs.byKey = map[string]*contest{}
	}
	if now.Sub(cs.swept) < contestedWithin {
		return
	}
	cs.swept = now
	maps.DeleteFunc(cs.byKey, func(_ string, c *contest) bool { return c.over(now) })
}

// markVanished records in the graph that a value vanished by itself.
func (s *Scheduler) markVanished(key string) {
	s.graph.Lost(key)
	s.vanished = append(s.vanished, key)
}

// delayContested delays the creation of contested values. A value that vanished together
// with its dependency does not count: it waits for the dependency anyway.
func (s *Scheduler) delayContested(r *run) {
	keys := s.vanished
	s.vanished = nil
	now := time.Now()
	for _, key := range keys {
		n := s.graph.Node(key)
		if n == nil || !vanishedAlone(n) {
			continue
		}
		pause, begun := s.contests.lost(key, now)
		if pause == 0 {
			continue
		}
		s.graph.Suspend(key, fmt.Errorf("%w: it is created again after a pause of %v", ErrContested, pause))
		s.retries.put(key, &retry{attempt: 1, due: now.Add(pause), delay: pause, txn: r.rec.Seq})
		if begun {
			s.log.Warn("somebody else removes a value repeatedly; it is created again after growing pauses",
				"key", key, "times", contestedAfter, "within", contestedWithin, "longest_pause", longestPause)
		}
	}
}

// vanishedAlone reports whether n could be created at once.
func vanishedAlone(n *graph.Node) bool {
	return n.Desired() != nil && n.Actual() == nil && n.State() == graph.Missing && len(n.Unmet()) == 0 &&
		(n.Base() == nil || n.Base().Actual() != nil)
}
