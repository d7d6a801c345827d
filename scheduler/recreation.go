package scheduler

import "github.com/keyplane/keyplane/scheduler/internal/graph"

// recreations finds the operations of a run that together replace an Update: Delete and Create
// of a value, and of the values that are derived from it. In records they are marked, and the
// value is REMOVED between the two. Its status is PENDING meanwhile, like that of any value
// that is desired and not there; but nothing is unmet, so PENDING would mislead the reader.
type recreations struct {
	bases  map[*graph.Node]bool // being recreated, or recreated
	halves map[*graph.Node]bool // deleted, and not created yet
}

// begins marks the record of an operation that begins.
func (rs *recreations) begins(op graph.Op, o *Operation) {
	n := op.Node
	base := n
	for base.Base() != nil && !base.Recreating() {
		base = base.Base()
	}
	switch {
	case op.Verb == graph.Delete && base.Recreating():
		rs.remember(&rs.bases, base)
		o.Recreate = true
	case op.Verb == graph.Create && (rs.halves[n] || rs.bases[base]):
		o.Recreate = true
		if rs.halves[n] {
			delete(rs.halves, n)
			o.OldState = Removed
		}
	}
}

// ended returns the state to record after an operation that led to state.
func (rs *recreations) ended(op graph.Op, o *Operation, state State) State {
	if op.Verb != graph.Delete || !o.Recreate || state != Pending || len(op.Node.Unmet()) > 0 {
		return state
	}
	rs.remember(&rs.halves, op.Node)
	return Removed
}

// unfinished reports whether n was deleted to be created again, which did not happen. It is
// PENDING then, and the record must say so.
func (rs *recreations) unfinished(n *graph.Node) bool { return rs.halves[n] }

// remember adds n to one of the sets. They are made when they are needed, because most
// runs recreate nothing.
func (rs *recreations) remember(where *map[*graph.Node]bool, n *graph.Node) {
	if *where == nil {
		*where = map[*graph.Node]bool{}
	}
	(*where)[n] = true
}
