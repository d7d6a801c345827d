package graph

import (
	"github.com/keyplane/keyplane/scheduler/internal/queue"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A Connection is shared by the values of some Kinds. The zero value is up.
//
//	phase      operations   the next phase
//	Up         begin        BeginRead: Reading. Disconnect: Down
//	Reading    wait         EndRead: Up. Disconnect: Down
//	Down       fail         BeginRead: Reading. Forget: Gone
//	Gone       fail         BeginRead: Reading
//
// While a connection is read back, none of its operations begins: so the result of the
// read-back is not older than their effect. Operations of other connections proceed.
//
// At most Limit operations of a connection run. Otherwise all that a large transaction needs would be begun before anything
// of a small one that comes later.
type Connection struct {
	phase    connectionPhase
	kinds    []*Knowledge
	reason   string // why it is down, for people
	losses   int    // number of calls of Disconnect
	flying   int    // operations in flight
	applying int    // detached creates and updates
	deleting int    // detached deletes
	// The nodes that wait to be deleted, and to be applied. Some are there that wait no more; see Node.held.
	heldDeletes, heldApplies queue.Fair[*Node]
	// Limit is the number of operations, in flight or detached, from which others are held. 0: none.
	Limit int
}

type connectionPhase uint8

const (
	up connectionPhase = iota
	reading
	down
	gone // down, and none of its values exists any more
)

// A Knowledge is what is known of the actual values of one Kind. The zero value is known, and
// belongs to no connection.
//
//	state    actual values                              operations   the next state
//	known    as they were read, and changed since       begin        Disconnect: unknown
//	unknown  as they were known before, or none yet     wait         Known, after the kind was read back
//
// Unknown is not gone: what depends on an unknown value, and exists, stays. Nothing is created,
// changed or deleted on it. An operator's changes of what is desired are kept, and done when the
// kind is known. See Node.unknown for single values that are known before their kind is.
type Knowledge struct {
	// Place says that the values contain those that depend on them, such as a network namespace: while it
	// is unknown whether one exists, it is also unknown whether there is something in it.
	Place bool

	of      *Connection
	unknown bool
	why     string // why it could not be read; empty: it was not tried yet
}

// Lost reports that the connection is down or gone. A nil Connection never is.
func (c *Connection) Lost() bool { return c != nil && (c.phase == down || c.phase == gone) }

// Gone reports that the connection is gone.
func (c *Connection) Gone() bool { return c.phase == gone }

// Reason says for people why a lost connection is down.
func (c *Connection) Reason() string { return c.reason }

// Losses returns how often the connection was lost. A read-back that began before the last
// loss is worthless.
func (c *Connection) Losses() int { return c.losses }

// Held yields the nodes with an operation that could run otherwise.
func (c *Connection) Held(yield func(*Node) bool) {
	for _, next := range []action{actionDelete, actionApply} {
		for n := range c.held(next).All {
			if n.held == next && !yield(n) {
				return
			}
		}
	}
}

// Unknown reports whether nobody knows which values of the kind exist. That is not so while its connection
// is gone: there are none. A nil Knowledge is not unknown.
func (k *Knowledge) Unknown() bool { return k != nil && k.unknown && !k.of.Gone() }

// Failed reports that the kind is unknown although it was tried to read it back.
func (k *Knowledge) Failed() bool { return k.unknown && k.why != "" }

// Why says for people why the kind is unknown.
func (k *Knowledge) Why() string {
	switch {
	case k.of.Lost():
		return k.of.reason
	case k.why != "":
		return k.why
	}
	return "the end of the read-back of its connection, which is up again"
}

// knowledge returns what is known of the kind of n, or of its base if that shows whether n exists. nil: n
// has no value, or its kind is always known.
func (n *Node) knowledge() *Knowledge {
	if n.followsBase() {
		return n.base.knowledge()
	}
	if kind := n.kind(); kind != nil {
		return kind.Knowledge()
	}
	return nil
}

// followsBase reports that reading back the base of n shows whether n exists.
func (n *Node) followsBase() bool { return n.base != nil && evidence(n.kind()) != value.ReadAlone }

// connection returns the connection of n, or nil.
func (n *Node) connection() *Connection {
	if k := n.knowledge(); k != nil {
		return k.of
	}
	return nil
}

// kindUnknown reports that no operation of n may begin, because its kind was not read back since its
// connection was lost.
func (n *Node) kindUnknown() bool {
	k := n.knowledge()
	return k != nil && k.unknown
}

// Unknown reports that nobody knows whether the actual value of n is as the graph has it. An
// observation makes a single value known before its kind is.
func (n *Node) Unknown() bool {
	if n.followsBase() {
		return n.base.Unknown()
	}
	// The result of an operation that ran until after its connection was gone is not known.
	return !n.sighted && n.kindUnknown() && (n.actual != nil || !n.connection().Gone())
}

// kind returns the Kind of n; nil: it has none, or no value.
func (n *Node) kind() Kind {
	switch {
	case n.desired != nil:
		return n.desired.Kind
	case n.actual != nil:
		return n.actual.Kind
	}
	return nil
}
