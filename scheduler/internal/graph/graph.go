// Package graph decides what to do next, and nothing else: it has no lock, no
// clock, no I/O and no goroutine, and one goroutine owns it.
//
// A node is a key. It has what is wanted under it and what stands, each a
// [Value] with its dependencies and derived values. Intent comes in by Want,
// Unwant and Reject, reality by Found, Lost and Done. [Graph.Next] names the
// operations that can run now; [Graph.Done] tells how one ended, which may make
// others ready. Many operations may be in flight at once.
//
// Order. What must go goes first, dependents before what they depend on: what is
// unwanted, what its new version cannot update in place, what loses a
// dependency. Then the rest comes, dependencies first. A value whose new version
// does not need what leaves is updated in place before that leaves; only when
// nothing else can move is it taken down instead. Values that need each other
// in a ring come when all of the ring is wanted and nothing outside it is
// missing, and leave together, one member at a time. Among operations that do
// not depend on each other the order is that of the intent.
//
// What values claim is a node too, which never stands: its edges are from those that
// compete for it, and one of them is met.
//
// Cost follows the change: each dependency is an edge with a flag, each version
// counts its unmet ones, and only nodes next to a change are looked at. A
// dependency on any of many keys is one edge to one witness; it looks for
// another only when that one leaves. Without one, it is matched with each key that
// comes under its folder: n of them in a folder of n keys may match n*n times.
package graph

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// A Kind is what the graph asks of a sort of value. Its functions are pure.
type Kind interface {
	Equivalent(key string, old, new any) bool
	Recreate(key string, old, new, meta any) bool
	Gate() *Gate // nil: nothing ever stands between it and the southbound
	Evidence() Evidence
}

// A Value is what is wanted or stands under a key. It is never changed.
type Value struct {
	Key     string
	Data    any
	Kind    Kind // nil: a property, which stands whenever its base does
	Deps    []Dep
	Derived []*Value
	Err     error    // why the value cannot stand at all; nil: it can
	Claims  *[]Claim // nil: it claims nothing
	// Doubt says of what stands that it may have been changed or removed since: it is
	// taken down before what is wanted comes, even if that is the same.
	Doubt bool
	// Declared is how the graph's owner got the value, where that is not all in Data.
	Declared *Declared
}

// Declared is a value as somebody wrote it. The graph only compares it.
type Declared struct {
	Data     any
	Warnings []string // about what is in Declared.Data but not in Value.Data
}

// A Dep must be met before a value can stand: by Key, or by any key with one
// of Prefixes (none: whatever it begins with) that Match accepts (nil: all). One with
// nothing but a Label is never met.
type Dep struct {
	Label    string
	Key      string
	Prefixes []string
	Match    func(key string) bool
}

// A Graph is owned by one goroutine.
type Graph struct {
	nodes   map[string]*Node
	shelves map[Kind]*shelf
	ups     *btree.Map[string, *Node] // those of nodes that are up; nil until something depends on any of many
	orphans []*edge                   // any-of edges whose witness went down
	buckets map[string]*bucket        // any-of dependencies without a witness, by folder

	dirty    queue // to be evaluated
	deletes  queue // may be deleted
	comes    queue // may be created or updated
	parked   []*Node
	disputed []*Node // what is claimed, where it is to be decided who has it
	rings    []*ring
	touched  []*Node
	deleting int // in flight
	coming   int // in flight
	complete bool
	journal  *journal
}

// New returns an empty graph.
func New() *Graph {
	return &Graph{nodes: map[string]*Node{}, shelves: map[Kind]*shelf{}, buckets: map[string]*bucket{}}
}

// Expect makes room for intent for n keys, so that taking it in moves nothing
// about.
func (g *Graph) Expect(n int) {
	if n > len(g.nodes) {
		nodes := make(map[string]*Node, len(g.nodes)+n)
		maps.Copy(nodes, g.nodes)
		g.nodes = nodes
	}
	g.touched = slices.Grow(g.touched, n)
	g.dirty.list = slices.Grow(g.dirty.list, n)
}

// Want sets what should stand under v's key, and under those derived from it.
func (g *Graph) Want(v *Value) {
	n := g.node(v.Key)
	g.save(n)
	if n.rejected != nil {
		n.rejected = nil
		g.touch(n)
	}
	g.wantNode(n, v, nil)
}

// Unwant says that nothing should stand under key.
func (g *Graph) Unwant(key string) {
	n := g.nodes[key]
	if n == nil || n.base != nil {
		return
	}
	g.save(n)
	n.rejected = nil
	n.release = true
	g.unwantNode(n)
}

// Reject says that the newest intent for key cannot be followed. What is wanted
// otherwise stays wanted; where nothing is, what stands stays.
func (g *Graph) Reject(key string, err error) {
	n := g.node(key)
	g.save(n)
	n.rejected = err
	g.touch(n)
}

// Spare says that what was found standing under key is not to be removed for
// being unwanted.
func (g *Graph) Spare(key string) {
	n := g.node(key)
	g.save(n)
	n.release = false
	for _, d := range n.parts() {
		g.save(d)
		d.release = false
	}
}

// Complete says that from now on everything that is wanted has been said: what
// stands of ours without being wanted goes. What stands where the only intent
// cannot be followed stays: it is what was valid before we were there.
func (g *Graph) Complete() {
	g.complete = true
	unwanted := func(n *Node) bool { return n.want == nil && n.have != nil && !n.foreign && !n.refused() }
	for _, n := range g.sortedBy(unwanted) {
		g.save(n)
		n.release = true
		g.push(n)
	}
}

// sortedBy returns the nodes for which is holds, sorted by key, so that what is
// done about them is done in an order that can be foretold.
func (g *Graph) sortedBy(is func(*Node) bool) (out []*Node) {
	for _, n := range g.nodes {
		if is(n) {
			out = append(out, n)
		}
	}
	sortByKey(out)
	return out
}

func sortByKey(nodes []*Node) {
	slices.SortFunc(nodes, func(a, b *Node) int { return strings.Compare(a.key, b.key) })
}

// Retry lets a failed key be tried again.
func (g *Graph) Retry(key string) {
	if n := g.nodes[key]; n != nil && n.rest {
		g.save(n)
		n.retry()
		g.push(n)
	}
}

// Hold has what is wanted under key, and does not stand, rest as failed with err until it is
// retried or changed.
func (g *Graph) Hold(key string, err error) {
	n := g.nodes[key]
	if n == nil || n.want == nil || n.have != nil || n.busy {
		return
	}
	g.save(n)
	n.err, n.rest = err, true
	g.touch(n)
}

func (g *Graph) wantNode(n *Node, v *Value, base *Node) {
	g.save(n)
	if n.want != nil && n.base == base && same(n.want.Value, v) && sameDeclared(n.want.Declared, v.Declared) {
		n.retry()
		g.push(n)
		return
	}
	old := n.want
	n.base, n.foreign = base, false
	g.setWant(n, g.newVersion(n, v))
	for _, d := range v.Derived {
		g.wantNode(g.node(d.Key), d, n)
	}
	if old != nil {
		g.unwantDerived(n, old.Derived)
		return
	}
	for _, d := range n.parts() { // those that were found, and that v does not derive, may go now
		g.push(d)
	}
}

func (g *Graph) unwantNode(n *Node) {
	old := n.want
	g.setWant(n, nil)
	if old != nil {
		g.unwantDerived(n, old.Derived)
	}
}

// unwantDerived drops those of was that base no longer derives.
func (g *Graph) unwantDerived(base *Node, was []*Value) {
	still := make(map[string]bool)
	if base.want != nil {
		for _, d := range base.want.Derived {
			still[d.Key] = true
		}
	}
	for _, d := range was {
		if dn := g.nodes[d.Key]; dn != nil && dn.base == base && !still[d.Key] {
			g.save(dn)
			dn.release = true
			g.unwantNode(dn)
		}
	}
}

// node returns the node of key; a new one says nothing yet, but can be an end
// of edges.
func (g *Graph) node(key string) *Node {
	n := g.nodes[key]
	if n == nil {
		n = &Node{key: key}
		g.nodes[key] = n
		if g.journal != nil {
			g.journal.created = append(g.journal.created, n)
		}
	}
	return n
}

// Node returns the node of key, or nil.
func (g *Graph) Node(key string) *Node { return g.nodes[key] }

// Wants says that something is wanted under key.
func (g *Graph) Wants(key string) bool { return g.nodes[key] != nil && g.nodes[key].want != nil }

// Len is the number of nodes, those included that are only depended on.
func (g *Graph) Len() int { return len(g.nodes) }

// Nodes yields all nodes, in no order.
func (g *Graph) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, n := range g.nodes {
			if !yield(n) {
				return
			}
		}
	}
}

// PeekTouched yields the same nodes as Touched, which yields them again.
func (g *Graph) PeekTouched() iter.Seq[*Node] { return slices.Values(g.touched) }

// Touched yields each node that changed since it was last asked, once, in the
// order in which they first changed, and then forgets those that say nothing
// any more.
func (g *Graph) Touched() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for i := 0; i < len(g.touched); i++ {
			n := g.touched[i]
			n.touched = false
			if !yield(n) {
				g.touched = append(g.touched[:0], g.touched[i+1:]...)
				return
			}
			g.sweep(n)
		}
		g.touched = emptied(g.touched)
	}
}

// ChangedLen is the number of nodes that Touched would yield.
func (g *Graph) ChangedLen() int { return len(g.touched) }

// Changed yields the nodes that Touched would, but for the first so many, and
// forgets nothing.
func (g *Graph) Changed(after int) iter.Seq[*Node] { return slices.Values(g.touched[after:]) }

func (g *Graph) touch(n *Node) {
	if g.journal != nil && !n.News {
		g.journal.awoken = append(g.journal.awoken, n)
	}
	n.News = true
	if !n.touched {
		n.touched = true
		g.touched = append(g.touched, n)
	}
}

// sweep forgets n if nothing is wanted, stands, is in flight or hangs on it.
func (g *Graph) sweep(n *Node) {
	if n.busy || n.queued || n.saved != unsaved {
		return
	}
	if n.own.refs == 0 && !n.own.saved {
		n.own = version{}
	}
	if !n.silent() {
		return
	}
	delete(g.nodes, n.key)
	g.unfile(n)
	n.dropped = true
}
