package graph

import (
	"iter"
	"slices"

	"google.golang.org/protobuf/proto"
)

// A Node is what the graph knows of one key. A test holds it to 256 bytes, which is
// what the memory for it comes in.
type Node struct {
	key string
	nodeState
	in    []*edge // edges that end here; each change is a step in the journal
	ring  *ring
	shelf *shelf // of its kind; nil: it never had a value
	place int32  // in shelf
	Slot  int32  // for the graph's owner; 0 at first

	busy    bool // an operation is in flight
	saved   saving
	touched bool
	News    bool // touched since the graph's owner set it to false
	queued  bool // in one of the graph's queues
	parking parking
	dropped bool

	own     version // for the first value, so that most nodes are one piece of memory
	ownEdge [1]edge // for own
}

// A nodeState is all of a node that a plan must not change. The journal copies it whole.
type nodeState struct {
	want, have *version
	meta       any
	base       *Node // the node that this one is derived from
	err        error // why the last operation failed
	rejected   error // why the newest intent cannot be followed
	users      int32 // edges in in of versions that stand
	last       Verb
	tenure     tenure
	stay       stay

	going    bool // stands, but must go
	rest     bool // failed, and is not tried again until retried or changed
	spoiler  bool // failed as a member of a ring, which waits for it
	foreign  bool // what stands is not ours
	release  bool // when unwanted, it may be removed
	recreate bool // is being taken down and put up again
	missing  bool // what stood vanished by itself
	disputed bool // it is to be decided who has it
	coveted  bool // claimed by one that does not yield, when that was last decided or since
}

// A version is a Value under a node, with its edges while it is wanted or stands.
type version struct{ versionState }

// A versionState is copied whole by the journal, with what edges has.
type versionState struct {
	*Value
	node  *Node
	edges []edge
	unmet int32
	refs  int8 // 1 for wanted, 1 for standing
	saved bool // in the journal
}

// newVersion returns v as a version of n. When nothing refers to it any more Touched
// takes the one of n's own back.
func (g *Graph) newVersion(n *Node, v *Value) *version {
	w := &n.own
	if w.node != nil {
		w = &version{}
	}
	g.keep(w)
	w.Value, w.node = v, n
	return w
}

// up says that n stands and does not have to go: that it meets a dependency.
func (n *Node) up() bool { return n.have != nil && !n.going }

// refused says that n, or what it is derived from, has intent that cannot be followed.
func (n *Node) refused() bool { return n.rejected != nil || n.base != nil && n.base.rejected != nil }

// silent says that nothing is wanted, stands or hangs on n.
func (n *Node) silent() bool {
	return n.want == nil && n.have == nil && n.rejected == nil && len(n.in) == 0
}

// retry lets n be tried again. If what stands had to go and did not, that is to be
// decided again; until then it stays down, so that no dependent comes only to go again.
func (n *Node) retry() {
	n.rest, n.spoiler, n.stay = false, false, certain
	if n.going {
		n.stay = doubtful
	}
}

// parts are the nodes derived from n that stand.
func (n *Node) parts() (out []*Node) {
	for _, e := range n.in {
		if e.dep == nil && e.uses() {
			out = append(out, e.v.node)
		}
	}
	return out
}

// Parts yields the nodes derived from n that are wanted or stand.
func (g *Graph) Parts(n *Node) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		if n.want != nil {
			for _, d := range n.want.Derived {
				if dn := g.nodes[d.Key]; dn != nil && dn.base == n && !yield(dn) {
					return
				}
			}
		}
		for _, dn := range n.parts() {
			if dn.want == nil && !yield(dn) {
				return
			}
		}
	}
}

// settled says that n, if derived, stands on the version of its base that
// wants it.
func (n *Node) settled() bool { return n.base == nil || n.base.have == n.base.want }

// same says that two values are alike to the letter.
func same(a, b *Value) bool {
	if a == b {
		return true
	}
	if a.Key != b.Key || a.Kind != b.Kind || (a.Err == nil) != (b.Err == nil) || a.Doubt != b.Doubt {
		return false
	}
	return sameData(a.Data, b.Data)
}

func sameData(a, b any) bool {
	am, ok := a.(proto.Message)
	if !ok {
		return a == b
	}
	bm, ok := b.(proto.Message)
	return ok && proto.Equal(am, bm)
}

// sameDeclared says that two values were declared alike to the letter.
func sameDeclared(a, b *Declared) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameData(a.Data, b.Data) && slices.Equal(a.Warnings, b.Warnings)
}

// Key is the node's key.
func (n *Node) Key() string { return n.key }

// Want is what should stand, or nil.
func (n *Node) Want() *Value { return n.want.value() }

// Have is what stands, or nil.
func (n *Node) Have() *Value { return n.have.value() }

func (v *version) value() *Value {
	if v == nil {
		return nil
	}
	return v.Value
}

// Meta is what creating the value has taught.
func (n *Node) Meta() any { return n.meta }

// Base is the node that this one is derived from, or nil.
func (n *Node) Base() *Node { return n.base }

// Foreign says that what stands is not ours.
func (n *Node) Foreign() bool { return n.foreign }

// Gone says that the graph has forgotten the node.
func (n *Node) Gone() bool { return n.dropped }

// Last is the verb of the last operation that was done.
func (n *Node) Last() Verb { return n.last }

// Err is why the newest intent cannot be followed, or why the last operation
// failed.
func (n *Node) Err() error {
	switch {
	case n.rejected != nil:
		return n.rejected
	case n.err != nil:
		return n.err
	case n.want == nil || n.want.Err != nil || n.want.Claims == nil:
		return n.want.err()
	}
	return n.taken()
}

func (v *version) err() error {
	if v == nil {
		return nil
	}
	return v.Err
}

// Unmet are the dependencies that what is wanted waits for.
func (n *Node) Unmet() (out []Dep) {
	if n.want == nil || n.want == n.have {
		return nil
	}
	if n.shut() {
		out = append(out, Dep{Label: n.gate().reason})
	}
	for i := range n.want.edges {
		switch e := &n.want.edges[i]; {
		case e.met || e.dep == nil:
		case e.stake == nil:
			out = append(out, *e.dep)
		case !e.stake.lost:
			out = append(out, Dep{Label: e.dep.Label, Key: e.stake.rival.key})
		}
	}
	return out
}

// Dependents yields the keys of the versions that stand on n.
func (n *Node) Dependents() []string {
	var out []string
	for _, e := range n.in {
		if e.uses() {
			out = append(out, e.v.node.key)
		}
	}
	return out
}

// State is where a node stands between what is wanted and what is.
type State uint8

const (
	Nonexistent State = iota
	Configured        // stands as wanted
	Pending           // waits for its dependencies
	Missing           // vanished by itself, and was not put back yet
	Discovered        // stands and is ours, but not (yet) wanted
	Obtained          // stands and is not ours
	Failed            // the last operation failed
	Rejected          // the newest intent cannot be followed
)

// State returns n's.
func (n *Node) State() State {
	switch {
	case n.rejected != nil, n.want != nil && n.want.Err != nil:
		return Rejected
	case n.err != nil:
		return Failed
	case n.Loses():
		return Rejected
	case n.want == nil && n.have == nil:
		return Nonexistent
	case n.foreign:
		return Obtained
	case n.want == nil:
		return Discovered
	case n.want == n.have:
		return Configured
	case n.missing && !n.shut():
		return Missing
	}
	return Pending
}
