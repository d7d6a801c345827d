package graph

import "github.com/keyplane/keyplane/scheduler/internal/value"

// Want sets the desired value of v's key, and of its derived keys.
func (g *Graph) Want(v *Value) {
	n := g.node(v.Key)
	if n.errs.Rejection() != nil {
		g.edit(n).errs.SetRejection(nil)
		g.touch(n)
	}
	g.wantNode(n, g.identify(v), nil)
}

// Unwant clears the desired value of key.
func (g *Graph) Unwant(key string) {
	n := g.Node(key)
	if n == nil || n.base != nil {
		return
	}
	s := g.edit(n)
	s.errs.SetRejection(nil)
	s.removable = true
	g.unwantNode(n)
}

// Reject marks the newest desired value of key as refused. The last valid one stays
// desired. If there is none, an actual value stays.
func (g *Graph) Reject(key string, err error) {
	n := g.node(key)
	g.edit(n).errs.SetRejection(err)
	g.touch(n)
}

// Spare keeps the value that was found under key, although it is not desired.
func (g *Graph) Spare(key string) {
	n := g.node(key)
	g.edit(n).removable = false
	for _, d := range n.actualParts() {
		g.edit(d).removable = false
	}
}

// Complete reports that all desired values are known. From now on, actual values of ours
// that are not desired are deleted. An actual value whose only desired value was refused
// stays: it may be the valid value from before a restart.
func (g *Graph) Complete() {
	g.complete = true
	unwanted := func(n *Node) bool { return n.desired == nil && n.actual != nil && !n.foreign && !n.rejectedOrBase() }
	for _, n := range g.sortedBy(unwanted) {
		g.edit(n).removable = true
		g.push(n)
	}
}

// Retry allows the next attempt for a failed key.
func (g *Graph) Retry(key string) {
	if n := g.Node(key); n != nil && n.suspended() {
		g.setRenewed(n, false)
		g.edit(n).retry()
		g.push(n)
	}
}

// Suspend marks a desired value that is not there, or not as desired, as failed with err, until Retry or a
// new value. That its dependencies are unmet, and met again, does not matter.
func (g *Graph) Suspend(key string, err error) {
	n := g.Node(key)
	if n == nil || n.desired == nil || n.actual == n.desired || n.running != idle {
		return
	}
	s := g.edit(n)
	s.errs.SetFailure(err)
	s.suspension = flapping
	g.touch(n)
}

// wantNode sets the desired value of a node and of the values derived from it. An
// identical value only ends a failed state: to declare a value again is to ask for another
// attempt.
func (g *Graph) wantNode(n *Node, v *Value, base *Node) {
	if n.desired != nil && n.base == base && identical(n.desired.Value, v) && n.desired.Declared().Same(v.Declared()) && len(n.desired.Claims()) == len(v.Claims()) {
		g.edit(n).retry()
		g.push(n)
		return
	}
	old := n.desired
	s := g.edit(n)
	s.base, s.foreign = base, false
	g.setDesired(n, g.newVersion(n, v))
	if old != nil {
		g.unwantDerived(n, old.Derived()) // first: what a part of n derived may be derived by n itself now, or by another part
	}
	for _, d := range v.Derived() {
		if dn := g.node(d.Key); dn.base == n || dn.desired == nil || dn.base == nil || dn.base.desired == nil {
			g.wantNode(dn, d, n)
		} // else another value derives it, and only one of the two can be applied; see recheckDerived
	}
	for _, d := range n.actualParts() { // found earlier, and not derived by v: they may be deleted now
		g.push(d)
	}
}

// unwantNode removes the desired value and the values derived from it.
func (g *Graph) unwantNode(n *Node) {
	old := n.desired
	g.setDesired(n, nil)
	if n.actual != nil && n.kindUnknown() {
		g.edit(n).last = value.Delete // it is deleted when its kind is known
	}
	if old != nil {
		g.unwantDerived(n, old.Derived())
	}
}

// unwantDerived clears the desired values in was that base no longer derives.
func (g *Graph) unwantDerived(base *Node, was []*Value) {
	still := make(map[string]bool)
	if base.desired != nil {
		for _, d := range base.desired.Derived() {
			still[d.Key] = true
		}
	}
	for _, d := range was {
		if dn := g.Node(d.Key); dn != nil && dn.base == base && !still[d.Key] {
			g.edit(dn).removable = true
			g.unwantNode(dn)
		}
	}
}
