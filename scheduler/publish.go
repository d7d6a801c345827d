package scheduler

import (
	"errors"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// publish makes the new status of n public; old is its present status, or nil.
func (s *Scheduler) publish(now time.Time, n *graph.Node, old *Status) State {
	n.News = false
	state := s.stateOf(n)
	if st := n.State(); st != graph.Failed && st != graph.Rejected {
		s.retries.Drop(n.Key())
	}
	d := kind.Of(n)
	if d != nil {
		d.Remember(n)
	}
	if state == Nonexistent {
		if old != nil {
			if d := s.registry.Of(old.Key); d != nil && old.Meta != nil {
				d.Index.Drop(d.NameIn(old.Key))
			}
			s.statuses.Drop(n.Slot)
			s.count(old, nil)
			n.Slot = 0
			s.retries.Drop(n.Key())
			state = Removed
			s.watchers.Publish(&Status{Key: old.Key, State: state, Last: verbs[graph.Delete], Since: now, Base: old.Base, Descriptor: old.Descriptor})
		}
		return state
	}
	st := &Status{
		Key: n.Key(), State: state, Err: kind.ErrOf(n), Last: verbs[n.Last()],
		Desired: kind.Declared(n.Desired()), Actual: kind.Message(n.Actual()), Meta: n.Meta(), Since: now,
	}
	st.Details, st.Waits = details(n, state)
	st.value = n.Desired()
	if st.value == nil {
		st.value = n.Actual()
	}
	if d != nil {
		st.Descriptor = d.Name
	}
	if n.Base() != nil {
		st.Base = n.Base().Key()
	}
	if old != nil {
		st.txn = old.txn
		if old.State == state {
			st.Since = old.Since
		}
	}
	if n.State() == graph.Rejected {
		st.Last = Validate
	}
	n.Slot = s.statuses.Put(n.Slot, st)
	s.count(old, st)
	s.watchers.Publish(st)
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
// tell: RETRYING depends on the schedule of retries, and UNIMPLEMENTED on the error.
func (s *Scheduler) stateOf(n *graph.Node) State {
	b, state := n.Base(), n.State()
	switch {
	case b != nil && n.Actual() == nil && b.Actual() == nil:
		return Nonexistent // it cannot be derived without its base
	case (state == graph.Failed || state == graph.Rejected) && errors.Is(n.Err(), ErrUnimplemented):
		return Unimplemented
	case state == graph.Failed && s.retries.Pending(n.Key()) != nil:
		return Retrying
	}
	return states[state]
}

// details returns the details of a status: unmet dependencies, invalid fields or warnings.
func details(n *graph.Node, state State) (labels []string, waits []Dependency) {
	switch state {
	case Pending:
		waits = publicDependencies(n.Unmet())
		for _, d := range waits {
			labels = append(labels, d.Label)
		}
	case Invalid:
		labels = models.Fields(n.Err())
	default:
		labels = kind.Warnings(n.Desired())
	}
	return labels, waits
}
