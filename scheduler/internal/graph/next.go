package graph

import "slices"

// A Verb is what an operation does to its key.
type Verb uint8

const (
	None Verb = iota
	Create
	Update
	Delete
)

func (v Verb) String() string {
	return [...]string{"NONE", "CREATE", "UPDATE", "DELETE"}[v]
}

// An Op is one operation. It is in flight from Next to Done.
type Op struct {
	Verb     Verb
	Node     *Node
	Old, New *Value // New is nil for Delete, Old for Create
	Meta     any    // of Old
	Recreate bool   // a Delete and a Create in place of an Update

	version *version
}

// Judge decides who has what is claimed, as Next does before anything else, so that State
// is right before anything is done.
func (g *Graph) Judge() { g.judge() }

// Next returns an operation that can run now. When there is none, either others
// are in flight, or all that is possible has been done.
func (g *Graph) Next() (Op, bool) {
	for {
		g.drain()
		if op, ok := g.start(); ok {
			return op, true
		}
		if g.deleting+g.coming > 0 || !g.settle() {
			return Op{}, false
		}
	}
}

// InFlight is the number of operations that Next gave and Done did not take back.
func (g *Graph) InFlight() int { return g.deleting + g.coming }

// Done says how an operation ended: with meta, or with err, and then the key
// rests until it is retried or changed.
func (g *Graph) Done(op Op, meta any, err error) {
	n := op.Node
	g.save(n)
	n.busy = false
	n.last = op.Verb
	g.count(op.Verb, -1)
	inRing := n.ring != nil
	g.endRing(n)
	if n.shut() {
		g.Lost(n.key) // whatever happened, nothing of it is left
		g.push(n)
		return
	}
	n.err = err
	if err != nil {
		n.rest, n.spoiler = true, inRing
		g.spoil(n)
		g.touch(n)
		g.push(n)
		if op.Verb == Create {
			g.forfeit(n)
		}
		return
	}
	n.foreign = false
	n.recreate = n.recreate && op.Verb == Delete
	g.setHave(n, op.version, meta)
}

// Cancel takes an operation back that was not begun.
func (g *Graph) Cancel(op Op) {
	n := op.Node
	n.busy = false
	g.count(op.Verb, -1)
	g.endRing(n)
	g.push(n)
}

func (g *Graph) count(v Verb, by int) {
	if v == Delete {
		g.deleting += by
	} else {
		g.coming += by
	}
}

// drain evaluates every node that something happened to.
func (g *Graph) drain() {
	for {
		g.judge()
		n := g.dirty.pop()
		if n == nil {
			if g.rehome() {
				continue
			}
			return
		}
		n.queued = false
		if !n.busy {
			g.evaluate(n)
		}
	}
}

func (g *Graph) push(n *Node) {
	if !n.queued {
		n.queued = true
		g.dirty.push(n)
	}
}

// A lot is what can be done about a node now.
type lot uint8

const (
	idle   lot = iota // nothing is to be done
	waits             // something is to be done, but cannot yet
	leaves            // it may be deleted
	comes             // it may be created or updated
)

// evaluate puts n into the queue where it belongs.
func (g *Graph) evaluate(n *Node) {
	n.queued = true // what happens to n here has been seen
	if n.missing && n.want != nil && n.want.unmet > 0 {
		g.save(n)
		n.missing = false // from now on it waits like any other
		g.touch(n)
	}
	if n.have != n.want && equivalent(n) {
		g.setHave(n, n.want, n.meta)
	}
	g.setGoing(n, g.goes(n))
	if n.err != nil && n.moot() {
		g.excuse(n)
	}
	lot := g.lot(n)
	n.queued = lot == leaves || lot == comes
	switch lot {
	case waits:
		g.park(n)
	case leaves:
		g.deletes.push(n)
	case comes:
		g.comes.push(n)
	}
}

// moot says that what failed is not needed any more, or not possible yet.
func (n *Node) moot() bool {
	if n.have == n.want {
		return !n.going
	}
	return n.have == nil && n.want.unmet > 0 && !n.spoiler
}

func (g *Graph) lot(n *Node) lot {
	switch {
	case n.rest || n.shut():
		return idle
	case n.going && n.mayLeave():
		return leaves
	case n.going:
		return waits
	case n.want == nil || n.want == n.have || n.hopeless():
		return idle
	case !n.settled() && (n.have == nil || n.have.unmet == 0):
		return idle
	case !n.settled() || n.want.unmet > 0:
		return waits
	}
	return comes
}

// goes is mustGo of n, and brings up to date how it is decided whether n stays.
func (g *Graph) goes(n *Node) bool {
	cannot := g.cannotStay(n)
	if n.stay == certain && (cannot || !n.going || n.err == nil) {
		return cannot
	}
	g.save(n)
	if !cannot && n.stay == certain { // its removal has failed
		n.stay = doubtful
	}
	if cannot || !n.mayNotStay() {
		n.stay = certain
	}
	return cannot || n.stay != certain
}

// mustGo says whether what stands has to be taken down. Until it is, it meets no
// dependencies.
func (g *Graph) mustGo(n *Node) bool { return g.cannotStay(n) || n.mayNotStay() }

// cannotStay says whether what stands has to be taken down whatever its new version waits for.
func (g *Graph) cannotStay(n *Node) bool {
	switch {
	case n.have == nil || n.foreign:
		return false
	case n.base != nil && !n.base.up():
		return true
	case n.want == nil:
		return g.removable(n)
	case n.Loses():
		return true
	case n.want == n.have || n.want.Err != nil:
		return n.have.unmet > 0
	case n.have.Doubt || n.have.Kind != nil && n.have.Kind.Recreate(n.key, n.have.Data, n.want.Data, n.meta):
		return true
	}
	return false
}

// mayNotStay says that what stands has to be taken down, or is in doubt, for its new version.
func (n *Node) mayNotStay() bool {
	switch {
	case n.stay == certain:
		return false
	case n.have == nil || n.want == nil || n.want == n.have || n.want.Err != nil || n.foreign:
		return false
	case n.stay == doubtful:
		return n.waitsInVain()
	}
	return n.stay == over && (n.want.unmet > 0 || !n.settled())
}

// removable says whether an unwanted node may be removed: it was wanted before,
// all intent is known, or its base no longer has it.
func (g *Graph) removable(n *Node) bool {
	return n.release || n.base != nil && n.base.want != nil
}

// equivalent says that what stands will do for what is wanted.
func equivalent(n *Node) bool {
	return n.have != nil && n.want != nil && alike(n.key, n.have.Value, n.want.Value)
}

// alike says that what stands, or was found, will do for a value.
func alike(key string, stands, v *Value) bool {
	if v.Err != nil || stands.Kind != v.Kind || stands.Doubt {
		return false
	}
	return v.Kind == nil || v.Kind.Equivalent(key, stands.Data, v.Data)
}

// start gives the next operation from the queues. Nothing comes while
// something that may go is still there, so that what both need is free.
func (g *Graph) start() (Op, bool) {
	for {
		q, lot := &g.comes, comes
		if g.deletes.len() > 0 {
			q, lot = &g.deletes, leaves
		}
		if lot == leaves && g.coming > 0 || lot == comes && g.deleting > 0 {
			return Op{}, false
		}
		n := q.pop()
		if n == nil {
			return Op{}, false
		}
		n.queued = false
		switch {
		case n.going != g.mustGo(n) || g.lot(n) != lot:
			g.evaluate(n)
		case n.ring != nil && n.ring.busy:
			n.queued = true
			n.ring.waiting = append(n.ring.waiting, n)
		default:
			return g.launch(n), true
		}
		g.drain()
	}
}

func (g *Graph) launch(n *Node) Op {
	op := Op{Node: n, Meta: n.meta, Old: n.have.value()}
	switch {
	case n.going:
		op.Verb = Delete
		g.save(n)
		n.recreate = n.want != nil && n.want != n.have && n.stay != over
	case n.have == nil:
		op.Verb = Create
	default:
		op.Verb = Update
	}
	if op.Verb != Delete {
		op.New, op.version = n.want.Value, n.want
	}
	op.Recreate = n.recreate
	n.busy = true
	if n.ring != nil {
		n.ring.busy = true
	}
	g.count(op.Verb, +1)
	return op
}

// A queue is first in, first out.
type queue struct {
	list []*Node
	head int
}

func (q *queue) len() int { return len(q.list) - q.head }

func (q *queue) clone() queue { return queue{slices.Clone(q.list), q.head} }

func (q *queue) push(n *Node) { q.list = append(q.list, n) }

func (q *queue) pop() *Node {
	if q.len() == 0 {
		return nil
	}
	n := q.list[q.head]
	q.list[q.head] = nil
	if q.head++; q.head == len(q.list) {
		q.list, q.head = emptied(q.list), 0
	}
	return n
}

// emptied is list without its elements, and without its room if that is much.
func emptied(list []*Node) []*Node {
	const much = 1024
	if cap(list) > much {
		return nil
	}
	clear(list)
	return list[:0]
}
