package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/contest"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// errContested is the error of a value that somebody else removes repeatedly after its
// creation.
var errContested = errors.New("somebody else removes it repeatedly")

// endContests ends the contests of the values that changes remove.
func (s *Scheduler) endContests(changes []Change) {
	for i := range changes {
		if c := &changes[i]; c.unwants(s.graph) {
			s.contests.Forget(c.Key)
		}
	}
}

// markVanished records in the graph that a value vanished by itself.
func (s *Scheduler) markVanished(key string) {
	s.graph.Lost(key)
	s.vanished = append(s.vanished, key)
}

// delayContested delays the creation of contested values. A value that vanished together
// with its dependency does not count: it waits for the dependency anyway. Without the
// delay, two programs that disagree about an item would change it as fast as they can.
func (s *Scheduler) delayContested(r *run) {
	keys := s.vanished
	s.vanished = nil
	now := time.Now()
	for _, key := range keys {
		n := s.graph.Node(key)
		if n == nil || !vanishedAlone(n) {
			continue
		}
		pause, begun := s.contests.Lost(key, now)
		if pause == 0 {
			continue
		}
		s.graph.Suspend(key, fmt.Errorf("%w: it is created again after a pause of %v", errContested, pause))
		s.retries.Postpone(key, pause, now, r.rec.Seq)
		if begun {
			s.log.Warn("somebody else removes a value repeatedly; it is created again after growing pauses",
				"key", key, "times", contest.After, "within", contest.Within, "longest_pause", contest.LongestPause)
		}
	}
}

// vanishedAlone reports whether n could be created at once.
func vanishedAlone(n *graph.Node) bool {
	return n.Desired() != nil && n.Actual() == nil && n.State() == graph.Missing && len(n.Unmet()) == 0 &&
		(n.Base() == nil || n.Base().Actual() != nil)
}
