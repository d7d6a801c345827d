package graph

import (
	"errors"
	"slices"
)

// A Claim is on something that one value alone can have. Who has it keeps it for as long
// as it is wanted to; of those that come new to it the one with the lowest key gets it. A
// value that does not get all that it claims cannot stand, and takes nothing from others.
type Claim struct {
	Of    string // what is claimed: the same for those that compete. No key is like it
	Label string // for people, who see it while somebody else still stands on it
	// Yields: any number may have it that yield, while none wants it that does not.
	Yields bool
	Taken  func(by string) error // what is wrong, where the value under the key by has it
}

// A stake is a Claim of a version, at the end of an edge to the node of what is
// claimed: that one never stands, but knows by its edges who competes.
type stake struct {
	*Claim
	dep Dep // as the edge has it
	verdict
}

// A verdict says who has what is claimed.
type verdict struct {
	rival *Node // who has it; nil: nobody else
	lost  bool  // rival has it for good; else it is about to leave
}

func (v *Value) claims() []Claim {
	if v.Claims == nil {
		return nil
	}
	return *v.Claims
}

// stakes makes edges for what v claims.
func (v *version) stakes(edges []edge) {
	claims := v.claims()
	all := make([]stake, len(claims))
	for i := range all {
		all[i] = stake{Claim: &claims[i], dep: Dep{Label: claims[i].Label, Key: claims[i].Of}}
		edges[i] = edge{v: v, dep: &all[i].dep, stake: &all[i]}
	}
}

// contest has what v claims judged anew: v has come, or gone, or is wanted, or stands, or
// its node's tenure has changed.
func (g *Graph) contest(v *version) {
	if v == nil || v.Claims == nil {
		return
	}
	for _, c := range *v.Claims {
		g.dispute(g.nodes[c.Of])
	}
}

// dispute leaves out what all yield: all have that, however many they are.
func (g *Graph) dispute(of *Node) {
	if of != nil && of.coveted && !of.disputed {
		g.note(of)
		of.disputed = true
		g.disputed = append(g.disputed, of)
	}
}

// judge decides who has what is disputed. Who loses one thing takes no part in what else
// it claims, so that this may go on; but only towards those that come later in an order
// (see before) that does not change meanwhile.
func (g *Graph) judge() {
	var losers []*Node
	for len(g.disputed) > 0 {
		of := g.disputed[0]
		g.disputed = g.disputed[1:]
		g.note(of)
		of.disputed, of.coveted = false, false
		var all claimants
		for _, e := range of.in {
			of.coveted = of.coveted || !e.stake.Yields
			all.add(e)
		}
		for _, e := range of.in {
			g.decide(e, &all)
			if n := e.v.node; n.tenure != newcomer && n.have == nil && e.stake.lost {
				losers = append(losers, n)
			}
		}
	}
	g.disputed = nil
	g.retire(losers)
}

// claimants are those who compete for one thing.
type claimants struct {
	first                      *Node // who has it, of those that do not yield
	greedy                     two   // who want it, and do not yield
	standing, standingGreedily two
}

func (all *claimants) add(e *edge) {
	n := e.v.node
	if e.v == n.contender() && !e.stake.Yields {
		all.greedy.add(n)
		if !e.losesElsewhere() && (all.first == nil || n.before(all.first)) {
			all.first = n
		}
	}
	if !e.uses() {
		return
	}
	all.standing.add(n)
	if !e.stake.Yields {
		all.standingGreedily.add(n)
	}
}

func (e *edge) losesElsewhere() bool {
	for i := range e.v.edges {
		if o := &e.v.edges[i]; o != e && o.isLost() {
			return true
		}
	}
	return false
}

// winner is to whom e loses, or nil.
func (all *claimants) winner(e *edge) *Node {
	n := e.v.node
	switch {
	case e.stake.Yields:
		return all.greedy.besides(n)
	case all.first == nil || all.first == n:
		return nil
	case e.v == n.contender() && n.before(all.first):
		return nil
	}
	return all.first
}

// standsOn is who else still stands on what e is to come to, or nil.
func (all *claimants) standsOn(e *edge) *Node {
	n := e.v.node
	switch {
	case e.uses():
		return nil
	case e.stake.Yields:
		return all.standingGreedily.besides(n)
	}
	return all.standing.besides(n)
}

func (g *Graph) decide(e *edge, all *claimants) {
	is, was := all.verdict(e), e.stake.verdict
	if is == was {
		return
	}
	g.keep(e.v)
	e.stake.verdict = is
	if is.rival == nil {
		g.meet(e)
	} else {
		g.unmeet(e)
	}
	g.touch(e.v.node)
	g.push(e.v.node)
	if is.lost != was.lost {
		g.contest(e.v)
	}
}

func (all *claimants) verdict(e *edge) verdict {
	if by := all.winner(e); by != nil {
		return verdict{by, true}
	}
	return verdict{all.standsOn(e), false}
}

// two are the two nodes with the lowest keys of many.
type two [2]*Node

func (t *two) add(n *Node) {
	switch {
	case t[0] == n || t[1] == n:
	case t[0] == nil || n.key < t[0].key:
		t[0], t[1] = n, t[0]
	case t[1] == nil || n.key < t[1].key:
		t[1] = n
	}
}

// besides is the lowest that is not n, or nil.
func (t *two) besides(n *Node) *Node {
	if t[0] == n {
		return t[1]
	}
	return t[0]
}

// hopeless says that what is wanted cannot stand, whatever else does.
func (n *Node) hopeless() bool { return n.want.Err != nil || n.Loses() }

// Loses says that others have what n claims.
func (n *Node) Loses() bool {
	if n.want == nil || n.want.Claims == nil || n.want.Err != nil {
		return false
	}
	return slices.ContainsFunc(n.want.edges, edge.isLost)
}

func (e edge) isLost() bool { return e.stake != nil && e.stake.lost }

// TakenError is what the claims of a value say that others have.
type TakenError struct{ Reasons []error }

func (e *TakenError) Error() string { return errors.Join(e.Reasons...).Error() }

func (e *TakenError) Unwrap() []error { return e.Reasons }

func (n *Node) taken() error {
	var reasons []error
	for _, e := range n.want.edges {
		if e.isLost() {
			reasons = append(reasons, e.stake.Taken(e.stake.rival.key))
		}
	}
	if reasons == nil {
		return nil
	}
	return &TakenError{reasons}
}
