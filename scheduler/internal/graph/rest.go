package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A search for open nodes takes at most mostSteps, and looks at no kind with more than mostSearched nodes. Where there are
// more, what is searched waits until nothing is open.
const mostSteps, mostSearched = 10_000, 1000

// isOpen reports that the state of n will change without any other event: its operation is running or held, or comes last, or it
// will be read back. A node that waits for nothing open, directly or not, is at rest, whatever runs elsewhere.
func (g *Graph) isOpen(n *Node) bool {
	return g.actionOf(n) == actionApplyLast || g.Awaiting() && (n.running == inFlight || n.running == detached || n.Held() ||
		n.cycle() != nil && n.cycle().goesOn() || g.willBeRead(n.connection()) || n.kind() == nil && g.kindWillBeRead(g.kindOf(n.key)))
}

// kindWillBeRead reports that the kind is being read back.
func (g *Graph) kindWillBeRead(kind Kind) bool {
	return kind != nil && g.willBeRead(kind.Knowledge().Of())
}

// awaited returns the nodes that n waits for. A nil stands for some that are not known, or too many.
func (g *Graph) awaited(n *Node) (out []*Node) {
	if n.isLeaving() {
		out = slices.Collect(n.keepers)
	}
	if n.desired == nil || n.desired == n.actual {
		return out
	}
	if !n.baseCurrent() {
		out = append(out, n.base)
	}
	for _, e := range n.desired.edges() {
		switch {
		case e.met:
		case e.anyOf():
			out = append(out, g.candidates(e.dep)...)
		default:
			out = append(out, e.to)
		}
	}
	for _, c := range n.desired.claims() {
		if c.holder != nil {
			out = append(out, c.holder)
		}
	}
	return out
}

// candidates returns the nodes that may meet an any-of dependency when they are applied: those of its keys, and all of the
// kinds whose values, or whose properties, may have the prefix. A nil is as in awaited.
func (g *Graph) candidates(d *value.Dep) (out []*Node) {
	if d.Any == nil || g.Keys == nil {
		return nil
	}
	for _, key := range d.Any.Keys {
		if n := g.Node(key); n != nil || g.kindWillBeRead(g.kindOf(key)) {
			out = append(out, n)
		}
	}
	for _, prefix := range d.Any.AllPrefixes() {
		for kind := range g.Keys.KindsUnder(prefix) {
			of := g.Of(kind)
			if len(of) > mostSearched || g.kindWillBeRead(kind) {
				return append(out, nil)
			}
			out = append(out, of...)
		}
	}
	return out
}
