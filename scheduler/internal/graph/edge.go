package graph

// An edge is a dependency of a version. It ends at the key it names, or, if any
// of many keys will do, at one that does: its witness.
type edge struct {
	v     *version
	dep   *Dep    // nil: on the base, of a derived value
	to    *Node   // nil: any of many, and none was ever there
	spots *[]spot // in buckets, while it is any of many and unmet
	stake *stake  // of a claim
	pos   int32   // in to.in
	met   bool
	ring  bool // met only because to is about to come, in a ring with us
}

// uses says that the edge belongs to a version that stands.
func (e *edge) uses() bool { return e.v.node.have == e.v }

func (e *edge) anyOf() bool { return e.dep != nil && e.dep.Key == "" }

// setWant and setHave are the only ways in which versions come and go, so
// edges, counts and queues follow them and nothing else.
func (g *Graph) setWant(n *Node, v *version) {
	g.save(n)
	old := n.want
	g.file(n, v)
	n.want = v
	if n.have != nil {
		n.tenure = n.contender().tenureAfter(n.have)
	} else {
		n.tenure = min(n.tenure, n.contender().tenureAfter(old))
	}
	n.err, n.recreate = nil, false
	n.retry()
	g.hold(v)
	g.drop(old)
	g.contest(old)
	g.contest(v)
	g.contest(n.have)
	g.moved(n)
}

func (g *Graph) setHave(n *Node, v *version, meta any) { g.place(n, v, meta, false) }

func (g *Graph) place(n *Node, v *version, meta any, going bool) {
	g.save(n)
	old, was := n.have, n.up()
	g.file(n, v)
	g.hold(v)
	if old != v {
		g.use(old, -1)
		n.have = v
		g.use(v, +1)
	}
	if v != nil {
		n.tenure = n.contender().tenureAfter(v)
	}
	g.drop(old)
	g.contest(old)
	g.contest(v)
	g.contest(n.want)
	n.meta = meta
	n.going, n.stay = going, certain
	if v != nil {
		n.missing = false
	}
	g.turned(n, was)
	g.moved(n)
	if n.want != nil {
		g.rebased(n.want)
	}
}

func (g *Graph) moved(n *Node) {
	if n.want == nil && n.have == nil {
		n.base = nil
	}
	g.touch(n)
	g.push(n)
}

func (g *Graph) setGoing(n *Node, going bool) {
	if going == n.going {
		return
	}
	g.save(n)
	was := n.up()
	n.going = going
	g.turned(n, was)
}

// rebased looks again at what v derives: its base is not what it was.
func (g *Graph) rebased(v *version) {
	for _, d := range v.Derived {
		if dn := g.nodes[d.Key]; dn != nil {
			g.touch(dn)
			g.push(dn)
		}
	}
}

func (g *Graph) hold(v *version) {
	if v == nil {
		return
	}
	g.keep(v)
	if v.refs++; v.refs == 1 {
		g.link(v)
	}
}

func (g *Graph) drop(v *version) {
	if v == nil {
		return
	}
	g.keep(v)
	if v.refs--; v.refs == 0 {
		g.unlink(v)
	}
}

// use counts v's edges in or out as those of a version that stands.
func (g *Graph) use(v *version, by int32) {
	if v == nil {
		return
	}
	for i := range v.edges {
		if to := v.edges[i].to; to != nil {
			g.note(to)
			to.users += by
			g.freed(to)
		}
	}
}

// freed looks again at a node that may have waited for its last user to leave.
func (g *Graph) freed(n *Node) {
	if n.going {
		g.push(n)
	}
}

func (g *Graph) link(v *version) {
	n := v.node
	size := len(v.Deps) + len(v.claims())
	if n.base != nil {
		size++
	}
	if v.edges = n.ownEdge[:]; v != &n.own || size != 1 {
		v.edges = make([]edge, size)
	}
	for i := range v.Deps {
		v.edges[i] = edge{v: v, dep: &v.Deps[i]}
	}
	if v.Claims != nil {
		v.stakes(v.edges[len(v.Deps):])
	}
	if n.base != nil {
		v.edges[size-1] = edge{v: v}
	}
	v.unmet = 0
	for i := range v.edges {
		e := &v.edges[i]
		to := g.target(e)
		if to != nil {
			g.attach(e, to)
		}
		if e.met = e.stake != nil || to != nil && to.up(); !e.met {
			v.unmet++
			g.listen(e)
		}
	}
}

// target is where a new edge ends.
func (g *Graph) target(e *edge) *Node {
	switch {
	case e.dep == nil:
		return e.v.node.base
	case e.dep.Key != "":
		return g.node(e.dep.Key)
	}
	return g.witness(e.dep)
}

func (g *Graph) unlink(v *version) {
	for i := range v.edges {
		e := &v.edges[i]
		g.deafen(e)
		if e.to != nil {
			g.detach(e)
		}
	}
	v.edges = nil
}

func (g *Graph) attach(e *edge, to *Node) {
	g.note(to)
	g.log(step{edge: e, to: to, added: true})
	e.to = to
	e.pos = int32(len(to.in))
	to.in = append(to.in, e)
	to.coveted = to.coveted || e.stake != nil && !e.stake.Yields
	if e.uses() {
		to.users++
	}
}

func (g *Graph) detach(e *edge) {
	to := e.to
	g.note(to)
	g.log(step{edge: e, to: to, pos: e.pos})
	last := len(to.in) - 1
	to.in[e.pos] = to.in[last]
	to.in[e.pos].pos = e.pos
	to.in[last] = nil
	to.in = to.in[:last]
	e.to, e.pos = nil, 0
	if e.uses() {
		to.users--
		g.freed(to)
	}
	if last == 0 {
		g.touch(to) // it may say nothing any more
	}
}

// turned tells n's dependents when it came up or went down.
func (g *Graph) turned(n *Node, was bool) {
	if n.up() == was {
		return
	}
	g.indexUp(n, was)
	if was {
		g.down(n)
		return
	}
	for _, e := range n.in {
		if e.ring {
			g.keep(e.v)
			e.ring = false
		}
		g.meet(e)
	}
	g.announce(n)
}

// indexUp keeps ups in line with n, which was up or not.
func (g *Graph) indexUp(n *Node, was bool) {
	switch {
	case g.ups == nil || n.up() == was:
	case was:
		g.ups.Delete(n.key)
	default:
		g.ups.Set(n.key, n)
	}
}

func (g *Graph) down(n *Node) {
	for _, e := range n.in {
		if e.anyOf() && e.met {
			g.orphans = append(g.orphans, e)
		} else {
			g.unmeet(e)
		}
	}
}

func (g *Graph) meet(e *edge) {
	if e.met {
		return
	}
	g.keep(e.v)
	e.met = true
	g.deafen(e)
	e.v.unmet--
	if e.v.unmet == 0 && e.v == e.v.node.want {
		g.save(e.v.node)
		e.v.node.retry()
	}
	g.touch(e.v.node)
	g.push(e.v.node) // even if more is unmet: that may be a ring
}

func (g *Graph) unmeet(e *edge) {
	if !e.met {
		return
	}
	g.keep(e.v)
	e.met, e.ring = false, false
	e.v.unmet++
	g.listen(e)
	g.touch(e.v.node)
	g.push(e.v.node)
}
