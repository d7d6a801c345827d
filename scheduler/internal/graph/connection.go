package graph

import (
	"github.com/keyplane/keyplane/scheduler/internal/link"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A Connection is shared by the values of some Kinds.
type Connection = link.Connection[*Node]

// A Knowledge is what is known of one Kind. See Node.Unknown for single values that are known before their kind is.
type Knowledge = link.Knowledge[*Node]

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
	return n.knowledge().Of()
}

// kindUnknown reports that no operation of n may begin, because its kind was not read back since its
// connection was lost.
func (n *Node) kindUnknown() bool {
	return n.knowledge().Unread()
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
