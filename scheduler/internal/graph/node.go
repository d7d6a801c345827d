package graph

import (
	"github.com/keyplane/keyplane/scheduler/internal/link"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A Node is the state of one key. A test limits it to 176 bytes, the size class in which
// Go allocates it.
type Node struct {
	key string
	nodeState
	hub       *hub       // nil: no edge has ended here, and it was in no cycle, as most nodes
	kindNodes *kindNodes // nodes of the same kind; nil: the node never had a value
	kindIndex int32      // index in kindNodes
	Slot      int32      // for the owner of the graph; 0 at first

	running running // its operation
	saved   bool    // a copy is in the journal
	touched bool
	News    bool           // touched since the owner of the graph cleared it
	queued  bool           // in one of the graph's queues
	held    link.Direction // the list of its connection that it is in
	blocked blockedState
	life    lifetime

	own     version // the first version, so that most nodes need one allocation
	ownEdge [1]edge // the edge of own, if that has one
}

// A nodeState is everything in a node that a plan must not change. The journal copies it
// whole.
type nodeState struct {
	desired, actual *version
	meta            any
	base            *Node // the node from which this one is derived
	errs            value.Errors
	dependents      int32 // incoming edges of actual versions
	last            value.Verb
	claimRank       value.Rank
	retention       retention
	suspension      suspension

	toDelete  bool // the actual value must be deleted
	foreign   bool // the actual value is not ours
	removable bool // the actual value may be deleted when it is not desired; until Spare
	recreate  bool // Delete and Create replace an Update
	missing   bool // the actual value vanished by itself
	unseen    bool // Found or Lost was ignored because of a running operation
	sighted   bool // the node is known although its kind is not
}

// A hub is the part of a node that most nodes lack.
type hub struct {
	edges []*edge // those that end at the node; the journal logs each change
	cycle *cycle
}

// in returns the edges that end at n.
func (n *Node) in() []*edge {
	if n.hub == nil {
		return nil
	}
	return n.hub.edges
}

func (n *Node) setIn(edges []*edge) { n.withHub().edges = edges }

// cycle returns the cycle that n is a member of; nil: none.
func (n *Node) cycle() *cycle {
	if n.hub == nil {
		return nil
	}
	return n.hub.cycle
}

func (n *Node) setCycle(c *cycle) { n.withHub().cycle = c }

// withHub returns the hub of n, which it makes if there is none.
func (n *Node) withHub() *hub {
	if n.hub == nil {
		n.hub = &hub{}
	}
	return n.hub
}

// A candidate is a node in a queue, with the cause of what put it there; see Graph.Cause.
type candidate struct {
	node  *Node
	cause uint8
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
	postponed                   // its operation was not begun, and is to be tried again
	flapping                    // by Suspend: what it depends on may vanish, and come back, meanwhile
)

// running says whether an operation of a node is running, and who waits for it. At most one
// operation of a node runs at a time.
//
//	state      the owner of the graph               ends with
//	idle       has no operation of the node         Next: inFlight
//	inFlight   waits for it and begins no other     Done, Cancel: idle. Detach: detached. Abandon: abandoned
//	           phase of the work meanwhile
//	detached   does other work meanwhile            Done: idle. Abandon: abandoned
//	abandoned  no longer waits for it               Returned: idle
//
// The effect of a detached or abandoned operation is not known yet. Until it ends, no other
// operation of the node begins, and neither Found nor Lost changes the node: the report may
// be older than the effect. NeedsReading tells that afterwards. The desired value may change
// meanwhile.
//
//	Create    the item may exist: the node keeps its claims, and its dependencies are not
//	          deleted. It meets no dependency of another value, except of those members of
//	          its cycle that were created before: they stay
//	Update    the old value counts as the actual one
//	Delete    the item may be gone: the node meets no dependency of another value
//
// An abandoned operation has failed: its node is Failed. A detached one is not late yet.
// While one is running, no operation of the opposite direction begins on its connection:
// neither Create nor Update beside Delete. Other connections proceed.
type running uint8

const (
	idle running = iota
	inFlight
	detached
	abandoned
)

// A retention says whether an actual value may stay while its new version is blocked and
// cannot be applied in place. Only a retained value meets dependencies.
type retention uint8

const (
	retained         retention = iota // it stays until nothing may let it be updated
	retentionUnclear                  // its Delete failed, and since then the reason for the Delete may have ended
	retentionEnded
)

// A blockedState says whether a node is in the list of blocked nodes.
type blockedState uint8

const (
	notBlocked blockedState = iota
	searched                // it was searched for a cycle without success
	blockedNew              // it has not been searched yet
)

// A cycle is a set of nodes that depend on each other. Its members run one at a time.
type cycle struct {
	members  []*Node
	waiting  []*Node
	inFlight bool
	deleting bool
}

// kindNodes are the nodes of one kind. The first value of a node sets its kind, which
// never changes.
type kindNodes struct {
	kind  Kind
	nodes []*Node
	saved bool // the journal has their number
}

// suspended reports whether the node waits within a cycle.
func (n *Node) suspended() bool { return n.suspension != notSuspended }

// FailedInCycle reports that the last operation of n failed within a cycle. The next attempt
// creates the other members of the cycle again, and everything that depends on them.
func (n *Node) FailedInCycle() bool { return n.suspension == suspendedInCycle }

// available reports that n meets the dependencies of other values: it is known to have an actual
// value, which is not about to be deleted.
func (n *Node) available() bool { return n.actual != nil && !n.toDelete && !n.Unknown() }

// rejectedOrBase reports that the newest value of n, or of a base, was refused.
func (n *Node) rejectedOrBase() bool {
	return n.errs.Rejection() != nil || n.base != nil && n.base.rejectedOrBase()
}

// unused reports that n has no value, no error and no incoming edge.
func (n *Node) unused() bool {
	return n.desired == nil && n.actual == nil && n.errs.None() && len(n.in()) == 0
}

// retry allows the next attempt. If an earlier Delete failed, its reason may have ended;
// until that is known n stays unavailable. Otherwise dependents would be created only to
// be deleted again.
func (s *nodeState) retry() {
	s.suspension, s.retention = notSuspended, retained
	if s.toDelete {
		s.retention = retentionUnclear
	}
}

// actualParts returns the actual nodes derived from n.
func (n *Node) actualParts() (out []*Node) {
	for _, e := range n.in() {
		if e.dep == nil && e.ofActual() {
			out = append(out, e.v.node)
		}
	}
	return out
}

// baseCurrent reports that the base of n, if any, is applied in its desired version.
func (n *Node) baseCurrent() bool { return n.base == nil || n.base.actual == n.base.desired }

// Root is the node that n is derived from in the end, or n.
func (n *Node) Root() *Node {
	for n.base != nil {
		n = n.base
	}
	return n
}

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
func (n *Node) Last() value.Verb { return n.last }

// LosesClaim reports that another node holds a resource that n claims.
func (n *Node) LosesClaim() bool {
	return n.desired != nil && n.desired.Err() == nil && n.desired.lostClaims() > 0
}

// Hung reports that a detached or abandoned operation of n is still running: nobody knows its
// effect yet.
func (n *Node) Hung() bool { return n.running >= detached }

// Held reports that an operation of n could run, but waits for its connection: for the end of a read-back or of detached
// operations, or for room.
func (n *Node) Held() bool { return n.held != link.None }

// Detached reports that a detached operation of n is running.
func (n *Node) Detached() bool { return n.running == detached }

// NeedsReading reports that Found or Lost was ignored because of a running operation, since
// the last call. The node must be read back when the operation has ended.
func (g *Graph) NeedsReading(n *Node) bool {
	was := n.unseen && n.running == idle
	if was {
		g.bookkeep(n).unseen = false
	}
	return was
}
