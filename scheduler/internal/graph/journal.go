package graph

// A journal has the nodes as they were when each was first changed since Begin.
type journal struct {
	list     []memento
	complete bool
}

type memento struct {
	node          *Node
	want, have    *version
	meta          any
	base          *Node
	err, rejected error
	last          Verb
	rest, foreign bool
	release       bool
	missing       bool
	going         bool
	spoiler       bool
	tenure        tenure
}

// Begin starts a journal, to be ended by Commit, Rollback or Undo. All that is
// possible must have been done.
func (g *Graph) Begin() { g.journal = &journal{complete: g.complete} }

// Commit ends the journal and keeps what was done.
func (g *Graph) Commit() {
	for _, m := range g.journal.list {
		m.node.saved = false
		g.touch(m.node)
	}
	g.journal = nil
}

// Rollback ends the journal and puts everything back as it was: what was done
// since Begin was only thought.
func (g *Graph) Rollback() {
	list := g.journal.list
	for i := len(list) - 1; i >= 0; i-- {
		m := &list[i]
		n := m.node
		n.base = m.base
		g.setWant(n, m.want)
		n.base = m.base
		g.place(n, m.have, m.meta, m.going)
		n.tenure = m.tenure
	}
	g.judge()
	for i := range g.journal.list { // it has grown: what came back told its neighbours to try again
		g.journal.list[i].restore()
	}
	g.complete = g.journal.complete
	g.Commit()
	for _, n := range g.unqueue() {
		g.push(n)
	}
	g.drain() // so that the order of what comes next is its own
}

func (m *memento) restore() {
	n := m.node
	n.base, n.err, n.rejected, n.last = m.base, m.err, m.rejected, m.last
	n.rest, n.foreign, n.release, n.missing, n.spoiler = m.rest, m.foreign, m.release, m.missing, m.spoiler
}

// unqueue takes all nodes out of all queues.
func (g *Graph) unqueue() (out []*Node) {
	for _, q := range []*queue{&g.dirty, &g.deletes, &g.comes} {
		for n := q.pop(); n != nil; n = q.pop() {
			n.queued = false
			out = append(out, n)
		}
	}
	for _, n := range g.parked {
		n.parked = false
	}
	g.parked = nil
	g.endRings()
	return out
}

// Undo ends the journal and wants again what was wanted before, in the reverse
// of the order of what was changed. What was done stays known; Next says what
// it takes to undo it. Who had what he claims has it again.
func (g *Graph) Undo() {
	list := g.journal.list
	g.complete = g.journal.complete
	g.Commit()
	queued := g.unqueue()
	for i := len(list) - 1; i >= 0; i-- {
		m := &list[i]
		n := m.node
		n.base = m.base
		n.rejected = m.rejected
		n.release = m.release || m.have == nil
		g.setWant(n, m.want)
		n.tenure = m.tenure
	}
	for _, n := range queued {
		g.push(n)
	}
}

// save notes n as it is, if it was not changed since Begin.
func (g *Graph) save(n *Node) {
	if g.journal == nil || n.saved {
		return
	}
	n.saved = true
	g.journal.list = append(g.journal.list, memento{
		node: n, want: n.want, have: n.have, meta: n.meta, base: n.base, err: n.err, rejected: n.rejected,
		last: n.last, rest: n.rest, foreign: n.foreign, release: n.release, missing: n.missing, going: n.going, spoiler: n.spoiler, tenure: n.tenure,
	})
}
