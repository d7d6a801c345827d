package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/link"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// inOrder checks that values leave and come in the order that their kinds promise.
func (m *model) inOrder(op Op) {
	n := op.Node
	switch {
	case op.Verb == value.Delete && m.leavesLast(n):
		// An operation of another connection that takes long does not delay it.
		m.nothingElse(op, func(o *Node) bool { return m.canCome(o) && order(o.desired) != value.CreateLast })
	case op.Verb == value.Create && n.cycle() == nil && order(n.desired) == value.CreateLast:
		m.nothingElse(op, m.leavesLast)
	}
}

func order(v *version) value.Order { return kind{}.Order(v.Key, v.Data) }

// nothingElse checks that no operation is possible that comes before this one.
func (m *model) nothingElse(op Op, before func(*Node) bool) {
	for n := range m.g.nodes.All() {
		key := n.key
		if n == op.Node || n.running != idle || n.Held() || n.suspended() || len(n.in()) > 0 && n.toDelete && n.dependents > 0 {
			continue
		}
		if n.kindUnknown() {
			continue
		}
		if line := lineOf(key); line != nil && m.g.journal == nil && (line.Phase() != link.Up || line.Detached() > 0 || line.HoldsAny()) {
			continue // it waits for its connection
		}
		if before(n) {
			m.t.Fatalf("%v %s, but %s can run before", op.Verb, op.Node.Key(), key)
		}
	}
}

// leavesLast says that n leaves for no other reason than that nobody wants it, or its base, any
// more, and that nothing else can wait for it.
func (m *model) leavesLast(n *Node) bool {
	if n.actual == nil || !n.toDelete || n.desired != nil || n.actual.ClaimSet() != nil {
		return false
	}
	withBase := n.base != nil && n.base.toDelete
	for _, e := range n.actual.edges() {
		if !e.met && !m.g.isUnknown(&e) && (!withBase || e.dep != nil) {
			return false
		}
	}
	switch {
	case n.base == nil:
		return order(n.actual) == value.MakeFirst
	case withBase:
		return m.leavesLast(n.base)
	}
	return n.base.actual != nil && order(n.base.actual) == value.MakeFirst
}

// canCome says that n can be created or updated.
func (m *model) canCome(n *Node) bool {
	return n.desired != nil && n.desired != n.actual && !n.toDelete && n.desired.Err() == nil && !n.LosesClaim() && n.baseCurrent() &&
		!slices.ContainsFunc(n.desired.edges(), func(e edge) bool { return !e.met })
}
