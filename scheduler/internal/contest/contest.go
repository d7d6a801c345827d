// Package contest decides how long a value that somebody else removes or changes again and again
// waits before it is put back. [Contests] decide; they know only keys and times, and have no
// clock. [Delays] apply that to a graph.
//
// A value is contested after [After] losses within [Within]; a change counts as a loss. From then on
// there is a pause before it is put back. Each further loss doubles the pause, up to [LongestPause]. A
// value that then exists for [Within] after its pause is no longer contested. Without the
// pauses, two programs that both insist on an item would replace it without end.
package contest

import (
	"maps"
	"time"
)

// The bounds of a contest.
const (
	After        = 5
	Within       = time.Minute
	LongestPause = time.Minute

	firstPause = time.Second
)

// Contests has the values that vanished recently. The zero value is empty. One goroutine
// owns it. Its memory is bounded by the keys that were lost within the longest contest.
type Contests struct {
	byKey map[string]*contest
	swept time.Time
}

type contest struct {
	losses []time.Time   // of the last minute, while it is not contested
	last   time.Time     // time of the last loss
	pause  time.Duration // before the next creation; 0: not contested
}

// Lost records that a value vanished or changed by itself. pause is the time before it is created
// again; begun reports that it is now contested.
func (cs *Contests) Lost(key string, now time.Time) (pause time.Duration, begun bool) {
	cs.dropOld(now)
	c := cs.byKey[key]
	if c == nil || c.over(now) {
		c = &contest{}
		cs.byKey[key] = c
	}
	c.last = now
	if c.pause > 0 {
		c.pause = min(2*c.pause, LongestPause)
		return c.pause, false
	}
	for len(c.losses) > 0 && now.Sub(c.losses[0]) >= Within {
		c.losses = c.losses[1:]
	}
	c.losses = append(c.losses, now)
	if len(c.losses) < After {
		return 0, false
	}
	*c = contest{last: now, pause: firstPause}
	return c.pause, true
}

// Pause returns the present pause of a contested value; 0: it is not contested.
func (cs *Contests) Pause(key string, now time.Time) time.Duration {
	if c := cs.byKey[key]; c != nil && !c.over(now) {
		return c.pause
	}
	return 0
}

// Forget ends the contest of a value that the agent itself has removed.
func (cs *Contests) Forget(key string) { delete(cs.byKey, key) }

// over reports whether the value has existed long enough since its last loss.
func (c *contest) over(now time.Time) bool { return now.Sub(c.last) >= c.pause+Within }

// dropOld removes old contests, at most once a minute.
func (cs *Contests) dropOld(now time.Time) {
	if cs.byKey == nil {
		cs.byKey = map[string]*contest{}
	}
	if now.Sub(cs.swept) < Within {
		return
	}
	cs.swept = now
	maps.DeleteFunc(cs.byKey, func(_ string, c *contest) bool { return c.over(now) })
}
