package scheduler

import (
	"errors"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/published"
)

// publish makes the new status of n public; old is its present one, or nil.
func (s *Scheduler) publish(now time.Time, n *graph.Node, old *published.Status) State {
	n.News = false
	state := s.stateOf(n)
	// A member of a cycle whose base is gone needs another attempt when the base is back.
	if st := n.State(); st != graph.Failed && st != graph.Rejected || state == Nonexistent && !n.FailedInCycle() {
		s.retries.Drop(n.Key())
	}
	d := kind.Of(n)
	if d != nil {
		d.Remember(n)
	}
	if state == Nonexistent {
		if old != nil {
			if d := old.Descriptor(); d != nil && old.Meta != nil {
				d.Index.Drop(d.NameIn(old.Key()))
			}
			s.statuses.Drop(n.Slot)
			s.count(old, nil)
			n.Slot = 0
			state = Removed
			s.watchers.Publish(old.After(uint8(state), uint8(Delete), now))
		}
		return state
	}
	x := published.Of(n, uint8(state), now)
	x.Last = uint8(verbs[n.Last()])
	if state == Pending {
		x.Await(n.Unmet())
		if x.Last == 0 && n.Actual() == nil {
			x.Last = uint8(Create) // the operation that waits
		}
	}
	if old != nil {
		x.Continue(old)
	}
	if n.State() == graph.Rejected {
		x.Last = uint8(Validate)
	}
	n.Slot = s.statuses.Put(n.Slot, x)
	s.count(old, x)
	s.watchers.Publish(x)
	return state
}

// states are the public states of nodes, unless stateOf knows more.
var states = [...]State{
	graph.Configured: Configured,
	graph.Pending:    Pending,
	graph.Missing:    Missing,
	graph.Discovered: Discovered,
	graph.Obtained:   Obtained,
	graph.Failed:     Failed,
	graph.Rejected:   Invalid,
}

// stateOf returns the public state of a node. The graph knows less than the public states
// tell: RETRYING depends on the schedule of retries, and UNIMPLEMENTED and, of a verb, INVALID on the error.
func (s *Scheduler) stateOf(n *graph.Node) State {
	b, state := n.Base(), n.State()
	switch {
	case b != nil && n.Actual() == nil && b.Actual() == nil:
		return Nonexistent // it cannot be derived without its base
	case (state == graph.Failed || state == graph.Rejected) && errors.Is(n.Err(), ErrUnimplemented):
		return Unimplemented
	case state == graph.Failed && errors.Is(n.Err(), ErrInvalid):
		return Invalid
	case state == graph.Failed && s.retries.Pending(n.Key()) != nil:
		return Retrying
	}
	return states[state]
}
