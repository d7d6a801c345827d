package history

import (
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// Recreations finds the operations of one run, or of a plan, that together replace an Update: Delete and Create
// of a value, and of the values that are derived from it. In records they are marked, and the
// value is REMOVED between the two. Its status is PENDING meanwhile, like that of any value
// that is desired and not there; but nothing is unmet, so PENDING would mislead the reader. The zero value has none.
type Recreations struct {
	bases  map[*graph.Node]bool // being recreated, or recreated
	halves map[*graph.Node]bool // deleted, and not created yet
}

// Begins is called when an operation begins. It reports whether the operation is a part of a
// recreation, and whether it is the Create after a Delete of this value.
func (m *Recreations) Begins(op graph.Op) (part, second bool) {
	n := op.Node
	base := n
	for base.Base() != nil && !base.Recreating() {
		base = base.Base()
	}
	switch {
	case op.Verb == value.Delete && base.Recreating():
		remember(&m.bases, base)
		return true, false
	case op.Verb == value.Create && (m.halves[n] || m.bases[base]):
		second = m.halves[n]
		delete(m.halves, n)
		return true, second
	}
	return false, false
}

// Ended is called when an operation has led to the state PENDING, and part says whether it is a
// part of a recreation. It reports whether the record says REMOVED instead.
func (m *Recreations) Ended(op graph.Op, part bool) (removed bool) {
	if op.Verb != value.Delete || !part || op.Node.Base() == nil && len(op.Node.Unmet()) > 0 {
		return false // a derived value goes and comes with its base, in an order that its dependencies demand
	}
	remember(&m.halves, op.Node)
	return true
}

// Unfinished reports whether n was deleted to be created again, which did not happen. It is
// PENDING then, and the record must say so.
func (m *Recreations) Unfinished(n *graph.Node) bool { return m.halves[n] }

// remember adds n to one of the sets. They are made when they are needed, because most
// runs recreate nothing.
func remember(where *map[*graph.Node]bool, n *graph.Node) {
	if *where == nil {
		*where = map[*graph.Node]bool{}
	}
	(*where)[n] = true
}
