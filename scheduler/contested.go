package scheduler

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// ErrContested is the error of a value that somebody else removes again and again after it
// was created.
var ErrContested = errors.New("somebody else removes it repeatedly")

// A value is contested once it has vanished so often within so much time. From then on
// there is a pause before it is created again, which doubles with each further loss. A
// value that stands for that long after its creation is not contested any more.
const (
	contestedAfter  = 5
	contestedWithin = time.Minute
	firstPause      = time.Second
	longestPause    = time.Minute
)

// contests are the values that have vanished lately. The zero value has none. It knows
// only keys and times.
type contests struct {
	byKey map[string]*contest
	swept time.Time
}

type contest struct {
	losses []time.Time   // of the last minute, while it is not contested
	last   time.Time     // loss
	pause  time.Duration // before it is created again; 0: it is not contested
}

// lost notes that a value has vanished by itself. pause is how long to wait before it is
// created again; begun says that it is contested from now on.
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

// forget has a value begin anew: it was removed by the agent itself, so what happens to it
// later has other reasons.
func (cs *contests) forget(key string) { delete(cs.byKey, key) }

// over says that the value has stood for long enough since its last loss.
func (c *contest) over(now time.Time) bool { return now.Sub(c.last) >= c.pause+contestedWithin }

// sweep forgets, once a minute at most, what has stood for long.
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

// vanish has the graph know that a value has vanished by itself.
func (s *Scheduler) markVanished(key string) {
	s.graph.Lost(key)
	s.vanished = append(s.vanished, key)
}

// contain puts off the creation of what others remove again and again. What vanished with
// something that it depends on is only a consequence, and waits for that anyway.
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

// vanishedAlone says that n could be created at once.
func vanishedAlone(n *graph.Node) bool {
	return n.Desired() != nil && n.Actual() == nil && n.State() == graph.Missing && len(n.Unmet()) == 0 &&
		(n.Base() == nil || n.Base().Actual() != nil)
}
