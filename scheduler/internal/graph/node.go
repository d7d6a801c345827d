package graph

import (
	"iter"
	"slices"
)

// A Node is the state of one key. A test limits it to 256 bytes, the size class in which
// Go allocates it.
type Node struct {
	key string
	nodeState
	in        []*edge // edges that end here; the journal logs each change as a step
	cycle     *cycle
	kindNodes *kindNodes // nodes of the same kind; nil: the node never had a value
	kindIndex int32      // index in kindNodes
	Slot      int32      // for the owner of the graph; 0 at first

	running running // its operation
	saved   savedState
	touched bool
	News    bool // touched since the owner of the graph cleared it
	queued  bool // in one of the graph's queues
	held    bool // in the list of its connection
	blocked blockedState
	life    lifetime

	own     version // the first version, so that most nodes need one allocation
	ownEdge [1]edge // the edge of own
}

// A nodeState is everything in a node that a plan must not change. The journal copies it
// whole.
type nodeState struct {
	desired, actual *version
	meta            any
	base            *Node // the node from which this one is derived
	err             error // why the last operation failed
	rejected        error // why the newest desired value was refused
	dependents      int32 // incoming edges of actual versions
	last            Verb
	claimRank       claimRank
	retention       retention
	suspension      suspension

	toDelete   bool // the actual value must be deleted
	foreign    bool // the actual value is not ours
	removable  bool // the actual value may be deleted when it is not desired
	recreate   bool // Delete and Create replace an Update
	missing    bool // the actual value vanished by itself
	unresolved bool // of a resource: its holder is not decided yet
	exclusive  bool // of a resource: a claim on it does not yield
	unseen     bool // Found or Lost was ignored because of a running operation
}

// A lifetime says whether a node is in the graph.
type lifetime uint8

const (
	kept    lifetime = iota
	planned          // created by a plan that is being made
	dropped          // the graph has forgotten it
)

// A suspension says whether an operation of the node may run after the last one failed. It
// ends with Retry, with a new desired value, and when the actual value vanishes.
type suspension uint8

const (
	notSuspended     suspension = iota
	suspended                   // no operation of the node runs
	suspendedInCycle            // as suspended; the other members of its cycle wait for it
)

// suspended reports whether the node waits within a cycle.
func (n *Node) suspended() bool { return n.suspension != notSuspended }

// FailedInCycle reports that the last operation of n failed within a cycle. The next attempt
// creates the other members of the cycle again, and everything that depends on them.
func (n *Node) FailedInCycle() bool { return n.suspension == suspendedInCycle }

// available reports that n meets the dependencies of other values: it has an actual value
// that is not about to be deleted.
func (n *Node) available() bool { return n.actual != nil && !n.toDelete }

// rejectedOrBase reports that the newest value of n, or of its base, was refused.
func (n *Node) rejectedOrBase() bool {
	return n.rejected != nil || n.base != nil && n.base.rejected != nil
}

// unused reports that n has no value, no error and no incoming edge.
func (n *Node) unused() bool {
	return n.desired == nil && n.actual == nil && n.rejected == nil && len(n.in) == 0
}

// retry allows the next attempt. If an earlier Delete failed, its reason may have ended;
// until that is known n stays unavailable. Otherwise dependents would be created only to
// be deleted again.
func (n *Node) retry() {
	n.suspension, n.retention = notSuspended, retained
	if n.toDelete {
		n.retention = retentionUnclear
	}
}

// actualParts returns the actual nodes derived from n.
func (n *Node) actualParts() (out []*Node) {
	for _, e := range n.in {
		if e.dep == nil && e.ofActual() {
			out = append(out, e.v.node)
		}
	}
	return out
}

// Derived yields the desired and the actual nodes derived from n.
func (g *Graph) Derived(n *Node) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		if n.desired != nil {
			for _, d := range n.desired.Derived {
				if dn := g.nodes[d.Key]; dn != nil && dn.base == n && !yield(dn) {
					return
				}
			}
		}
		for _, dn := range n.actualParts() {
			if dn.desired == nil && !yield(dn) {
				return
			}
		}
	}
}

// baseCurrent reports that the base of n, if any, is applied in its desired version.
func (n *Node) baseCurrent() bool { return n.base == nil || n.base.actual == n.base.desired }

// Key is the key of the node.
func (n *Node) Key() string { return n.key }

// Desired is the desired value, or nil.
func (n *Node) Desired() *Value { return n.desired.value() }

// Actual is the actual value, or nil.
func (n *Node) Actual() *Value { return n.actual.value() }

// Meta is the metadata of the actual value.
func (n *Node) Meta() any { return n.meta }

// Base is the node from which this one is derived, or nil.
func (n *Node) Base() *Node { return n.base }

// Foreign reports that the actual value is not ours.
func (n *Node) Foreign() bool { return n.foreign }

// Gone reports that the graph has forgotten the node.
func (n *Node) Gone() bool { return n.life == dropped }

// Last is the verb of the last operation.
func (n *Node) Last() Verb { return n.last }

// Dependents returns the keys of the actual values that depend on n.
func (n *Node) Dependents() []string {
	var out []string
	for _, e := range n.in {
		if e.ofActual() {
			out = append(out, e.v.node.key)
		}
	}
	return out
}

// LosesClaim reports that another node holds a resource that n claims.
func (n *Node) LosesClaim() bool {
	if n.desired == nil || n.desired.Claims == nil || n.desired.Err != nil {
		return false
	}
	return slices.ContainsFunc(n.desired.edges, edge.isLost)
}

// isLost reports whether the edge is a claim that another node holds.
func (e edge) isLost() bool { return e.claim != nil && e.claim.lost }

// A version is a Value of a node. It has edges while it is desired or actual.
type version struct{ versionState }

// A versionState is copied whole by the journal, with the state of its edges.
type versionState struct {
	*Value
	node  *Node
	edges []edge
	unmet int32
	refs  int8 // 1 for desired, 1 for actual
	saved bool // a copy is in the journal
}

// newVersion returns v as a version of n. It uses n.own if that is free; forget frees it.
func (g *Graph) newVersion(n *Node, v *Value) *version {
	w := &n.own
	if w.node != nil {
		w = &version{}
	}
	if n.life == planned {
		w.saved = true
	} else {
		g.saveVersion(w)
	}
	w.Value, w.node = v, n
	return w
}

// value returns nil for a nil version.
func (v *version) value() *Value {
	if v == nil {
		return nil
	}
	return v.Value
}

// err returns the reason why the value was refused; nil for a nil version.
func (v *version) err() error {
	if v == nil {
		return nil
	}
	return v.Err
}
