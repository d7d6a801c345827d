package graph

import "slices"

// A tenure says how much of what a node claims it has, since it stands or stood before
// it was taken down for a while: to be put up again, or for want of what it depends on.
// It ends when what stood vanishes, when it cannot be put up again, and when others have it.
type tenure uint8

const (
	newcomer tenure = iota // to all that it claims
	settler                // to some of it
	holder
)

// before is the order in which nodes get what they claim: who has it keeps it, and of
// newcomers the lowest key gets it.
func (n *Node) before(o *Node) bool {
	if n.tenure != o.tenure {
		return n.tenure > o.tenure
	}
	return n.key < o.key
}

// contender is the version of n that competes for what it claims: the wanted one or,
// where that is invalid, what stands until there is a better one; nil: none.
func (n *Node) contender() *version {
	if n.want != nil && n.want.Err != nil {
		return n.have
	}
	return n.want
}

// tenureAfter is the tenure of who had had, and now claims what v does.
func (v *version) tenureAfter(had *version) tenure {
	if v == nil || had == nil || v.Claims == nil || had.Claims == nil {
		return newcomer
	}
	held := 0
	for _, c := range *v.Claims {
		if slices.ContainsFunc(*had.Claims, c.within) {
			held++
		}
	}
	switch held {
	case 0:
		return newcomer
	case len(*v.Claims):
		return holder
	}
	return settler
}

// within says that who has had has all of c.
func (c Claim) within(had Claim) bool { return c.Of == had.Of && (c.Yields || !had.Yields) }

// forfeit ends n's tenure.
func (g *Graph) forfeit(n *Node) {
	if n.tenure == newcomer {
		return
	}
	g.save(n)
	n.tenure = newcomer
	g.contest(n.want)
}

// retire ends the tenure of those that do not stand and lose. Who has won comes before them
// anyway, so that nothing has to be judged anew.
func (g *Graph) retire(losers []*Node) {
	for _, n := range losers {
		if n.Loses() {
			g.save(n)
			n.tenure = newcomer
		}
	}
}
