package graph

import (
	"iter"
	"maps"
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/link"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// Keys tells which kind a key belongs to that has no value. It is pure.
type Keys interface {
	// KindOf returns the kind whose values, or whose properties, have such keys; nil: none.
	KindOf(key string) Kind
	// KindsUnder yields the kinds that may have keys with the prefix, or whose prefix begins with it.
	KindsUnder(prefix string) iter.Seq[Kind]
}

// Join makes k the knowledge of one more kind of the connection. The kind is unknown if the connection
// is down.
func (g *Graph) Join(c *Connection, k *Knowledge) {
	k.Join(c)
	g.setUnknown(k, c.Lost())
}

// Disconnect marks the connection as down, for a reason that people see. Its kinds become unknown:
// their values keep what was known of them, but meet no dependency of a value that does not exist yet.
// Operations in flight will fail, and their errors are ignored. A connection that is gone stays so.
func (g *Graph) Disconnect(c *Connection, reason string) {
	if !c.Gone() {
		g.setPhase(c, link.Down)
	}
	c.Lose(reason)
	g.dropHeld(c)
	nodes := g.withFollowers(g.nodesOf(c))
	g.reconsider(nodes, func() {
		for _, n := range nodes {
			// What was known not to exist does not come to exist by the loss. Its dependents may just be leaving.
			if absent := n.actual == nil && n.running == idle && !n.Unknown(); n.sighted != absent {
				g.edit(n).sighted = absent
			}
		}
		for _, k := range c.Kinds() {
			g.setUnknown(k, true)
			k.SetWhy("")
		}
	})
	for _, n := range nodes {
		g.clearFailure(n)
		g.push(n)
		g.dependenciesLeft(n)
	}
}

// Forget marks a connection that is down as gone: none of its values exists any more, as if all of them had
// been read back and not been found. But no operation of it begins before it is read back.
func (g *Graph) Forget(c *Connection) {
	g.setPhase(c, link.Gone)
	for _, n := range g.withFollowers(g.nodesOf(c)) {
		if !n.followsBase() {
			g.loseNode(n, true)
		}
		g.touch(n)
		g.push(n)
	}
	g.reconsiderDoubtful()
}

// dependenciesLeft classifies the values again that are to be deleted and that n depends on: a value
// of a connection that is down does not keep them.
func (g *Graph) dependenciesLeft(n *Node) {
	if n.actual == nil {
		return
	}
	for _, e := range n.actual.edges() {
		if e.to != nil {
			g.dependentLeft(e.to)
		}
	}
}

// BeginRead prevents operations of the connection from beginning, until EndRead.
func (g *Graph) BeginRead(c *Connection) {
	if c.Phase() == link.Reading {
		return
	}
	wasLost, wasGone := c.Lost(), c.Gone()
	g.setPhase(c, link.Reading)
	if wasGone { // it is there after all, and so may its values be
		for _, n := range g.nodesOf(c) {
			g.edit(n).sighted = false
		}
	}
	if wasLost {
		g.touchUnknown(c) // they wait for another reason now
	}
}

// EndRead lets operations of the connection begin again. It does nothing if the connection
// was lost meanwhile.
func (g *Graph) EndRead(c *Connection) {
	if c.Phase() == link.Reading {
		g.setPhase(c, link.Up)
		g.touchUnknown(c)
	}
	g.dropHeld(c)
}

// touchUnknown touches the nodes of c whose kind is unknown.
func (g *Graph) touchUnknown(c *Connection) {
	for _, n := range g.nodesOf(c) {
		if n.kindUnknown() {
			g.touch(n)
		}
	}
}

// Known marks a kind as known: all its values were read back, or were reported by NotFound.
func (g *Graph) Known(kind Kind) {
	k := kind.Knowledge()
	if !k.Unread() {
		return
	}
	nodes := g.withFollowers(g.sorted(g.Of(kind)))
	g.reconsider(nodes, func() { g.setUnknown(k, false) })
	for _, n := range nodes {
		g.touch(n)
		g.push(n)
	}
	g.reconsiderDoubtful()
}

// Unread notes why a kind could not be read back. A kind that was known stays so.
func (g *Graph) Unread(kind Kind, why string) {
	k := kind.Knowledge()
	if !k.Unknown() || !k.SetWhy(why) {
		return
	}
	for _, n := range g.withFollowers(g.sorted(g.Of(kind))) {
		g.touch(n)
	}
}

func (g *Graph) setUnknown(k *Knowledge, unknown bool) {
	if k.SetUnread(unknown) {
		if unknown {
			g.unknownKinds++
		} else {
			g.unknownKinds--
		}
	}
}

// sightLoss notes that n was seen to have no actual value. That is known from now on, even if its kind is unknown and
// its connection down.
func (g *Graph) sightLoss(n *Node, kindUnknown bool) {
	if n.sighted || !kindUnknown {
		return
	}
	g.edit(n).sighted = true
	g.touch(n)
	g.reconsiderDoubtful()
}

// sight notes that the actual value of n was seen while its kind is unknown. From now on it is known, with the derived
// values that it shows. On a connection that is down, it may be gone since.
func (g *Graph) sight(n *Node) {
	if n.sighted || !n.kindUnknown() || n.connection().Lost() {
		return
	}
	nodes := g.withFollowers([]*Node{n})
	g.reconsider(nodes, func() {
		g.edit(n).sighted = true
	})
	for _, n := range nodes {
		g.touch(n)
		g.push(n)
	}
	g.reconsiderDoubtful()
}

// withFollowers returns nodes, and after each those derived values whose existence it shows.
func (g *Graph) withFollowers(nodes []*Node) []*Node {
	out := make([]*Node, 0, len(nodes))
	var add func(n *Node)
	add = func(n *Node) {
		out = append(out, n)
		for d := range g.Derived(n) {
			if d.followsBase() {
				add(d)
			}
		}
	}
	for _, n := range nodes {
		if !n.followsBase() {
			add(n)
		}
	}
	return out
}

// reconsider makes a change after which other nodes are known, and updates their dependents.
func (g *Graph) reconsider(nodes []*Node, change func()) {
	was := make([]bool, len(nodes))
	for i, n := range nodes {
		was[i] = n.available()
	}
	change()
	for i, n := range nodes {
		g.availabilityChanged(n, was[i])
	}
}

// reconsiderDoubtful classifies the values again that stood, or waited, because of a dependency that
// was unknown.
func (g *Graph) reconsiderDoubtful() {
	for _, n := range g.sorted(slices.Collect(maps.Keys(g.doubtful))) {
		g.push(n)
	}
	clear(g.doubtful)
	g.searchAgain()
}

// noteDoubt notes that n, as it is classified, may stand or wait because of unknown dependencies.
func (g *Graph) noteDoubt(n *Node) {
	if g.unknownKinds == 0 || g.planning() || n.actual == nil {
		return
	}
	if n.actual.unmet > 0 || n.desired != nil && n.desired.unmet > 0 {
		g.doubtful[n] = struct{}{}
	}
}

// isUnknown reports whether nobody knows if an unmet dependency exists.
func (g *Graph) isUnknown(e *edge) bool {
	switch {
	case g.unknownKinds == 0:
		return false
	case e.anyOf():
		return e.to != nil && e.to.Unknown() || g.anyUnknown(e.dep)
	case e.to == nil:
		return false
	case e.to.desired == nil && e.to.actual == nil:
		return !e.to.sighted && g.keyUnknown(e.to.key)
	}
	return e.to.Unknown() || g.placeUnknown(e.to)
}

// placeUnknown reports that n, which does not exist as far as the graph knows, cannot be seen, because it is
// unknown whether the place exists in which it is.
func (g *Graph) placeUnknown(n *Node) bool {
	if n.actual != nil || n.desired == nil || n.desired.unmet == 0 {
		return false
	}
	return slices.ContainsFunc(n.desired.edges(), func(e edge) bool {
		if e.met || e.dep == nil || e.dep.Key == "" {
			return false
		}
		kind := g.kindOf(e.dep.Key)
		return kind != nil && kind.Knowledge() != nil && kind.Knowledge().Place && g.isUnknown(&e)
	})
}

// kindOf returns the kind that a key without a value belongs to; nil: none.
func (g *Graph) kindOf(key string) Kind {
	if g.Keys == nil {
		return nil
	}
	return g.Keys.KindOf(key)
}

// keyUnknown reports whether a key without a value belongs to a kind that is unknown.
func (g *Graph) keyUnknown(key string) bool {
	kind := g.kindOf(key)
	return kind != nil && keysUnknown(kind)
}

// keysUnknown reports whether values of a kind may exist of which the graph knows nothing. Values that
// others show may be those of any kind of their connection.
func keysUnknown(kind Kind) bool {
	k := kind.Knowledge()
	if k.Unknown() || k.Of() == nil || kind.Evidence() == value.ReadAlone {
		return k.Unknown()
	}
	return k.Of().AnyUnknown()
}

// anyUnknown reports whether a key that meets an any-of dependency may belong to a kind that is unknown.
func (g *Graph) anyUnknown(d *value.Dep) bool {
	if g.Keys == nil || d.Any == nil {
		return false
	}
	for _, key := range d.Any.Keys {
		if n := g.Node(key); n != nil && n.kind() != nil && n.Unknown() || g.keyUnknown(key) {
			return true
		}
	}
	for _, prefix := range d.Any.AllPrefixes() {
		for kind := range g.Keys.KindsUnder(prefix) {
			if keysUnknown(kind) {
				return true
			}
		}
	}
	return false
}

// lacking is the number of dependencies of v that are known to be missing.
func (g *Graph) lacking(v *version) int32 {
	if v.unmet == 0 || g.unknownKinds == 0 {
		return v.unmet
	}
	n := int32(0)
	edges := v.edges()
	for i := range edges {
		if e := &edges[i]; !e.met && !g.isUnknown(e) {
			n++
		}
	}
	for _, c := range v.claims() {
		if c.holder != nil {
			n++
		}
	}
	return n
}

// lacks reports that a dependency of v is known to be missing.
func (g *Graph) lacks(v *version) bool { return v.unmet > 0 && g.lacking(v) > 0 }

// waits reports that an unmet dependency of v is unknown.
func (g *Graph) waits(v *version) bool { return g.lacking(v) < v.unmet }

// mayApply reports that all dependencies of the desired version are met. One that is unknown does not matter
// for an update in place, if the present version has it too.
func (g *Graph) mayApply(n *Node) bool {
	if n.desired.unmet == 0 {
		return true
	}
	if n.actual == nil || g.unknownKinds == 0 || g.lacks(n.desired) || n.recreates() {
		return false
	}
	edges := n.desired.edges()
	for i := range edges {
		if e := &edges[i]; !e.met && !n.actual.has(e) {
			return false
		}
	}
	return true
}

// has reports whether the version has the dependency of an edge.
func (v *version) has(e *edge) bool {
	for _, own := range v.edges() {
		if own.dep == nil && e.dep == nil || own.dep != nil && e.dep != nil && own.dep.Same(e.dep) {
			return true
		}
	}
	return false
}

// setPhase changes the phase, and counts the connections that are being read.
func (g *Graph) setPhase(c *Connection, p link.Phase) {
	if c.Phase() == link.Reading {
		g.reading--
	}
	if c.Enter(p); p == link.Reading {
		g.reading++
	}
}

// nodesOf returns the nodes of a connection, sorted by key: maps have no fixed order, and
// the order of the nodes is seen in the transaction log.
func (g *Graph) nodesOf(c *Connection) (out []*Node) {
	for kind, shelf := range g.byKind {
		if kind.Knowledge().Of() == c {
			out = append(out, shelf.nodes...)
		}
	}
	g.sortByKey(out)
	return out
}

// sorted returns nodes in the order of their keys.
func (g *Graph) sorted(nodes []*Node) []*Node {
	out := append([]*Node(nil), nodes...)
	g.sortByKey(out)
	return out
}
