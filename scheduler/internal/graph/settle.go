package graph

import (
	"cmp"
	"slices"
)

// A ring is a set of nodes that need each other. Its members run one at a time.
type ring struct {
	members []*Node
	waiting []*Node
	busy    bool
	leaving bool
}

// parking says whether a node is among the parked ones, which wait.
type parking uint8

const (
	away    parking = iota
	parked          // a ring was looked for, and not found
	arrived         // not looked at yet
)

func (g *Graph) park(n *Node) {
	if n.parking == away {
		g.parked = append(g.parked, n)
	}
	n.parking = arrived
}

// settle is called when nothing can move, and looks for what may move after
// all; it says whether it found something.
func (g *Graph) settle() bool {
	if g.endRings() || g.form(g.needs, false) || g.form(g.users, true) || g.giveUp() {
		return true
	}
	for _, n := range g.parked {
		n.parking = away
	}
	g.parked = nil
	return false
}

// A stay says whether what stands may stay while a new version waits that cannot come
// in place of it. Only what certainly stays meets the dependencies of others.
type stay uint8

const (
	certain  stay = iota // until nothing else can move
	doubtful             // it had to go and did not, and since then that may have changed
	over
)

// waitsInVain says that what stands is not what is wanted, which cannot come in place.
func (n *Node) waitsInVain() bool {
	if !n.settled() {
		return n.have.unmet > 0
	}
	return n.want.unmet > 0
}

// giveUp takes down what stands in a version that is no longer wanted and
// cannot be updated in place.
func (g *Graph) giveUp() (found bool) {
	for _, n := range g.parked {
		if n.have != nil && n.stay != over && (!n.going || n.stay == doubtful) && g.lot(n) == waits {
			g.save(n)
			n.stay, found = over, true
			g.push(n)
		}
	}
	return found
}

// form finds rings among nodes that wait, by what each of them waits for.
func (g *Graph) form(next waitsFor, leaving bool) (found bool) {
	var roots []*Node
	for _, n := range g.parked {
		if n.parking != arrived || n.leaves() != leaving {
			continue
		}
		n.parking = parked
		if !n.busy && g.lot(n) == waits && !g.open(next(n)) {
			roots = append(roots, n)
		}
	}
	for _, members := range rings(roots, next) {
		found = true
		slices.SortStableFunc(members, func(a, b *Node) int { // what failed last time comes first
			return cmp.Compare(failures(b), failures(a))
		})
		r := &ring{members: members, leaving: leaving}
		g.rings = append(g.rings, r)
		for _, n := range members {
			n.ring = r
		}
		for _, n := range members {
			if !leaving {
				g.assume(n)
			}
			g.push(n)
		}
	}
	return found
}

func failures(n *Node) int {
	if n.err != nil {
		return 1
	}
	return 0
}

// open says that one of the nodes cannot be in a ring.
func (g *Graph) open(nodes []*Node) bool {
	return slices.ContainsFunc(nodes, func(n *Node) bool { return n == nil || g.lot(n) != waits })
}

// needs are the nodes that n waits for before it can come. A nil stands for
// something that will not come by itself.
func (g *Graph) needs(n *Node) (out []*Node) {
	if n.busy || n.going || g.lot(n) != waits || !n.settled() {
		return []*Node{nil}
	}
	for i := range n.want.edges {
		e := &n.want.edges[i]
		switch {
		case e.met:
		case e.anyOf() || e.to.have != nil:
			out = append(out, nil)
		default:
			out = append(out, e.to)
		}
	}
	return out
}

// users are the nodes that stand on n, which has to go; nil for one that will
// not go.
func (g *Graph) users(n *Node) (out []*Node) {
	if n.busy || !n.leaves() || n.rest {
		return []*Node{nil}
	}
	for _, e := range n.in {
		if e.uses() {
			out = append(out, e.v.node)
		}
	}
	return out
}

// assume counts n's dependencies on members of its ring as met.
func (g *Graph) assume(n *Node) {
	for i := range n.want.edges {
		if e := &n.want.edges[i]; !e.met && e.to.ring == n.ring {
			g.meet(e) // which saves e, too
			e.ring = true
		}
	}
}

// endRings takes back what was assumed of members that did not come.
func (g *Graph) endRings() (found bool) {
	for _, r := range g.rings {
		for _, n := range r.members {
			found = found || slices.ContainsFunc(n.in, func(e *edge) bool { return e.ring })
			g.spoil(n)
			if n.ring == r {
				n.ring = nil
			}
		}
	}
	g.rings = nil
	return found
}

// spoil takes back what the ring of a member that failed has assumed of it, so
// that no other comes in vain.
func (g *Graph) spoil(n *Node) {
	for _, e := range n.in {
		if e.ring {
			g.unmeet(e)
		}
	}
}

// endRing lets the next member of n's ring run.
func (g *Graph) endRing(n *Node) {
	r := n.ring
	if r == nil {
		return
	}
	r.busy = false
	for _, m := range r.waiting {
		m.queued = false
		g.push(m)
	}
	r.waiting = nil
}

// leaves says that n is to be taken down as soon as nothing stands on it.
func (n *Node) leaves() bool { return n.going && n.stay != doubtful }

// mayLeave says that n, which has to go, may be taken down now.
func (n *Node) mayLeave() bool {
	return n.stay != doubtful && (n.users == 0 || n.leavesInRing())
}

// leavesInRing says that all that stands on n leaves with it.
func (n *Node) leavesInRing() bool {
	if n.ring == nil || !n.ring.leaving {
		return false
	}
	for _, e := range n.in {
		if m := e.v.node; e.uses() && (m.ring != n.ring || m.rest) {
			return false
		}
	}
	return true
}

// waitsFor yields the nodes that n waits for.
type waitsFor func(n *Node) []*Node

// rings finds, among what roots wait for, the strongly connected components
// that wait for nothing outside themselves (Tarjan's algorithm, on a stack of
// its own).
func rings(roots []*Node, next waitsFor) (out [][]*Node) {
	t := tarjan{next: next, seen: map[*Node]*visit{}}
	for _, n := range roots {
		if t.seen[n] == nil {
			t.walk(n)
		}
	}
	return t.out
}

type tarjan struct {
	next  waitsFor
	seen  map[*Node]*visit
	stack []*visit // of nodes whose component is not known yet
	out   [][]*Node
}

type visit struct {
	node       *Node
	next       []*Node // not looked at yet
	index, low int
	onStack    bool
	open       bool // waits for something outside its component
}

func (t *tarjan) enter(n *Node) *visit {
	v := &visit{node: n, next: t.next(n), index: len(t.seen), low: len(t.seen), onStack: true}
	t.seen[n] = v
	t.stack = append(t.stack, v)
	return v
}

func (t *tarjan) walk(root *Node) {
	path := []*visit{t.enter(root)}
	for len(path) > 0 {
		v := path[len(path)-1]
		if len(v.next) > 0 {
			n := v.next[0]
			v.next = v.next[1:]
			if w := t.step(v, n); w != nil {
				path = append(path, w)
			}
			continue
		}
		path = path[:len(path)-1]
		if v.low == v.index {
			t.close(v)
		}
		if len(path) > 0 {
			up := path[len(path)-1]
			up.low = min(up.low, v.low)
			up.open = up.open || !v.onStack
		}
	}
}

// step goes from v to n; it returns n's visit if that has to be walked first.
func (t *tarjan) step(v *visit, n *Node) *visit {
	if n == nil {
		v.open = true
		return nil
	}
	w := t.seen[n]
	switch {
	case w == nil:
		return t.enter(n)
	case w.onStack:
		v.low = min(v.low, w.index)
	default:
		v.open = true
	}
	return nil
}

// close takes v's component off the stack.
func (t *tarjan) close(v *visit) {
	var members []*Node
	open := false
	for {
		w := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		w.onStack = false
		open = open || w.open
		members = append(members, w.node)
		if w == v {
			break
		}
	}
	if !open {
		t.out = append(t.out, members)
	}
}
