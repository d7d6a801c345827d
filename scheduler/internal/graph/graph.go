// Package graph decides the next operations of the scheduler. It has no lock, no clock, no
// I/O and no goroutine; one goroutine owns a graph.
//
// Each key is a node. A node has a desired and an actual [Value], each with its
// dependencies and derived values. The owner reports desired values by Want, Unwant and
// Reject, and actual values by Found, Lost and Done. [Graph.Next] returns the operations
// that can run now. [Graph.Done] reports the end of an operation, which may make others
// possible. Many operations may be in flight at once.
//
// # States
//
//	state        desired                       actual                         changed by
//	Nonexistent  none                          none                           Want, Found
//	Pending      a value                       none, or another value         a dependency that becomes available: Create or Update
//	Configured   a value                       the same value                 Want of another value, Unwant, Lost, Found of another value
//	Missing      a value                       none; it vanished by itself    as Pending; an unmet dependency makes it Pending
//	Discovered   none                          a value of ours                Want; Complete, which deletes it
//	Obtained     none                          a value of somebody else       Want, Lost
//	Failed       any                           any                            Retry, Want of another value; the last operation failed
//	Rejected     invalid, or it loses a claim  the last valid value, or none  Want, another holder of the claim
//
// A node that must be deleted keeps its actual value until Delete is done, but it is no
// longer available: it meets no dependency.
//
// # Order
//
// Deletes come first, dependents before their dependencies: values that are not desired,
// that cannot be updated in place, or that lose a dependency. Creates and updates follow,
// dependencies first. A value whose new version does not need the values that leave is
// updated in place before they leave. It is deleted and created again only if nothing else
// can run. Values that depend on each other in a cycle are created when all of them are
// desired and nothing outside the cycle is missing. They are deleted together, one member
// at a time. Independent operations run in the order of the owner's calls.
//
// # Claims
//
// A resource that values claim is a node too. It never has a value. Its incoming edges are
// the competing claims; the edge of the holder is met.
//
// # Cost
//
// The cost follows the size of a change: each dependency is an edge with a flag, each
// version counts its unmet edges, and only neighbours of a change are visited. A
// dependency on any of several keys is one edge to one provider. It looks for another
// provider when that one leaves. Without a provider it waits in the list of its folder,
// and is matched with each key that appears there. So n such dependencies in a folder of n
// keys may cost n*n matches.
package graph

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// A Graph is owned by one goroutine.
type Graph struct {
	nodes        map[string]*Node
	byKind       map[Kind]*kindNodes
	available    *btree.Map[string, *Node] // available nodes, by key; nil until the first any-of dependency
	lostProvider []*edge                   // any-of edges whose provider left
	waitlists    map[string]*waitlist      // any-of edges without a provider, by folder

	dirty      queue // to be classified
	deletes    queue // Delete can run
	applies    queue // Create or Update can run
	blocked    []*Node
	unresolved []*Node // resources whose holder is not decided yet
	cycles     []*cycle
	touched    []*Node
	deleting   int // deletes in flight
	applying   int // creates and updates in flight
	detached   int // detached operations
	reading    int // connections that are read back
	holding    int // held nodes
	complete   bool
	journal    *journal
}

// New returns an empty graph.
func New() *Graph {
	return &Graph{nodes: map[string]*Node{}, byKind: map[Kind]*kindNodes{}, waitlists: map[string]*waitlist{}}
}

// Expect makes room for n keys, so that adding them moves no memory. A plan that can be
// interrupted does not get room: to make it is one long step.
func (g *Graph) Expect(n int) {
	if g.journal != nil && g.journal.pace != nil {
		return
	}
	if n > len(g.nodes) {
		nodes := make(map[string]*Node, len(g.nodes)+n)
		maps.Copy(nodes, g.nodes)
		g.nodes = nodes
	}
	g.touched = slices.Grow(g.touched, n)
	g.dirty.list = slices.Grow(g.dirty.list, n)
}

// Want sets the desired value of v's key, and of its derived keys.
func (g *Graph) Want(v *Value) {
	n := g.node(v.Key)
	g.saveNode(n)
	if n.rejected != nil {
		n.rejected = nil
		g.touch(n)
	}
	g.wantNode(n, v, nil)
}

// Unwant clears the desired value of key.
func (g *Graph) Unwant(key string) {
	n := g.nodes[key]
	if n == nil || n.base != nil {
		return
	}
	g.saveNode(n)
	n.rejected = nil
	n.removable = true
	g.unwantNode(n)
}

// Reject marks the newest desired value of key as refused. The last valid one stays
// desired. If there is none, an actual value stays.
func (g *Graph) Reject(key string, err error) {
	n := g.node(key)
	g.saveNode(n)
	n.rejected = err
	g.touch(n)
}

// Spare keeps the value that was found under key, although it is not desired.
func (g *Graph) Spare(key string) {
	n := g.node(key)
	g.saveNode(n)
	n.removable = false
	for _, d := range n.actualParts() {
		g.saveNode(d)
		d.removable = false
	}
}

// Complete reports that all desired values are known. From now on, actual values of ours
// that are not desired are deleted. An actual value whose only desired value was refused
// stays: it may be the valid value from before a restart.
func (g *Graph) Complete() {
	g.complete = true
	unwanted := func(n *Node) bool { return n.desired == nil && n.actual != nil && !n.foreign && !n.rejectedOrBase() }
	for _, n := range g.sortedBy(unwanted) {
		g.saveNode(n)
		n.removable = true
		g.push(n)
	}
}

// sortedBy returns the matching nodes sorted by key, so that operations have a predictable
// order.
func (g *Graph) sortedBy(is func(*Node) bool) (out []*Node) {
	for _, n := range g.nodes {
		g.Pace()
		if is(n) {
			out = append(out, n)
		}
	}
	g.sortByKey(out)
	return out
}

// sortByKey sorts nodes, and lets others take their turn in between.
func (g *Graph) sortByKey(nodes []*Node) {
	slices.SortFunc(nodes, func(a, b *Node) int {
		g.Pace()
		return strings.Compare(a.key, b.key)
	})
}

// Retry allows the next attempt for a failed key.
func (g *Graph) Retry(key string) {
	if n := g.nodes[key]; n != nil && n.suspended() {
		g.saveNode(n)
		n.retry()
		g.push(n)
	}
}

// Suspend marks a desired value that is not actual as failed with err, until Retry or a
// new value.
func (g *Graph) Suspend(key string, err error) {
	n := g.nodes[key]
	if n == nil || n.desired == nil || n.actual != nil || n.running != idle {
		return
	}
	g.saveNode(n)
	n.err, n.suspension = err, suspended
	g.touch(n)
}

// wantNode sets the desired value of a node and of the values derived from it. An
// identical value only ends a failed state: to declare a value again is to ask for another
// attempt.
func (g *Graph) wantNode(n *Node, v *Value, base *Node) {
	g.saveNode(n)
	if n.desired != nil && n.base == base && identical(n.desired.Value, v) && identicalDeclared(n.desired.Declared, v.Declared) {
		n.retry()
		g.push(n)
		return
	}
	old := n.desired
	n.base, n.foreign = base, false
	g.setDesired(n, g.newVersion(n, v))
	for _, d := range v.Derived {
		g.wantNode(g.node(d.Key), d, n)
	}
	if old != nil {
		g.unwantDerived(n, old.Derived)
		return
	}
	for _, d := range n.actualParts() { // found earlier, and not derived by v: they may be deleted now
		g.push(d)
	}
}

// unwantNode removes the desired value and the values derived from it.
func (g *Graph) unwantNode(n *Node) {
	old := n.desired
	g.setDesired(n, nil)
	if old != nil {
		g.unwantDerived(n, old.Derived)
	}
}

// unwantDerived clears the desired values in was that base no longer derives.
func (g *Graph) unwantDerived(base *Node, was []*Value) {
	still := make(map[string]bool)
	if base.desired != nil {
		for _, d := range base.desired.Derived {
			still[d.Key] = true
		}
	}
	for _, d := range was {
		if dn := g.nodes[d.Key]; dn != nil && dn.base == base && !still[d.Key] {
			g.saveNode(dn)
			dn.removable = true
			g.unwantNode(dn)
		}
	}
}

// node returns the node of key. A new node has no state, but edges can end there.
func (g *Graph) node(key string) *Node {
	n := g.nodes[key]
	if n == nil {
		n = &Node{key: key}
		g.nodes[key] = n
		if g.journal != nil {
			g.journal.created = append(g.journal.created, n)
			if g.journal.plan {
				n.life, n.saved = planned, nodeSaved
				g.journal.keepPace()
			}
		}
	}
	return n
}

// Node returns the node of key, or nil.
func (g *Graph) Node(key string) *Node { return g.nodes[key] }

// Wants reports that key has a desired value.
func (g *Graph) Wants(key string) bool { return g.nodes[key] != nil && g.nodes[key].desired != nil }

// Len is the number of nodes, including those that are only dependencies.
func (g *Graph) Len() int { return len(g.nodes) }

// Nodes yields all nodes in no particular order.
func (g *Graph) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, n := range g.nodes {
			if !yield(n) {
				return
			}
		}
	}
}

// PeekTouched yields the nodes of the next Touched.
func (g *Graph) PeekTouched() iter.Seq[*Node] { return slices.Values(g.touched) }

// Touched yields each node that changed since the last call, in the order of their first
// changes. Nodes that are unused are forgotten afterwards.
func (g *Graph) Touched() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for i := 0; i < len(g.touched); i++ {
			n := g.touched[i]
			n.touched = false
			if !yield(n) {
				g.touched = append(g.touched[:0], g.touched[i+1:]...)
				return
			}
			g.forget(n)
		}
		g.touched = cleared(g.touched)
	}
}

// ChangedLen is the number of nodes that Touched would yield.
func (g *Graph) ChangedLen() int { return len(g.touched) }

// Changed yields the nodes of the next Touched, without the first ones.
func (g *Graph) Changed(after int) iter.Seq[*Node] { return slices.Values(g.touched[after:]) }

// touch puts a node on the list of those whose status may have changed.
func (g *Graph) touch(n *Node) {
	if g.journal != nil && !n.News {
		g.journal.newsNodes = append(g.journal.newsNodes, n)
	}
	n.News = true
	if !n.touched {
		n.touched = true
		g.touched = append(g.touched, n)
	}
}

// forget removes n from the graph if it is unused and nothing refers to it.
func (g *Graph) forget(n *Node) {
	if n.running != idle || n.queued || n.held || n.saved != unsaved {
		return
	}
	if n.own.refs == 0 && !n.own.saved {
		n.own = version{}
	}
	if !n.unused() {
		return
	}
	delete(g.nodes, n.key)
	g.removeFromKind(n)
	n.life = dropped
}
