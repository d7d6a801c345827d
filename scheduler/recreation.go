package scheduler

import (
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/recreation"
)

// markBegun marks the record of an operation that begins, if it is a part of a recreation.
func markBegun(m *recreation.Marks, op graph.Op, o *Operation) {
	part, second := m.Begins(op)
	if o.Recreate = o.Recreate || part; second {
		o.OldState = Removed
	}
}

// stateAfter returns the state to record after an operation that led to state.
func stateAfter(m *recreation.Marks, op graph.Op, o *Operation, state State) State {
	if state == Pending && m.Ended(op, o.Recreate) {
		return Removed
	}
	return state
}
