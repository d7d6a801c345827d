package graph

import (
	"github.com/keyplane/keyplane/scheduler/internal/link"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// An Op is one operation. Next returns it; it is in flight until Done or Cancel takes it
// back, or until Detach or Abandon ends its flight.
type Op struct {
	Verb     value.Verb
	Node     *Node
	Old, New *Value // New is nil for Delete; Old is nil for Create
	Meta     any    // metadata of Old
	Recreate bool   // a Delete and a Create replace an Update

	version *version
}

// count counts operations in flight. Deletions are counted apart: nothing is applied before them.
func (g *Graph) count(op Op, by int) {
	if op.direction() == link.Delete {
		g.deleting += by
	} else {
		g.applying += by
	}
	if c := op.connection(); c != nil && !g.planning() {
		c.Fly(by)
	}
}

// Flying reports that operations are in flight.
func (g *Graph) Flying() bool { return g.deleting+g.applying > 0 }

// connection returns the connection that the verb of the operation uses; nil: none.
func (op Op) connection() *Connection {
	v := op.New
	if op.Verb == value.Delete {
		v = op.Old
	}
	if v.Kind == nil {
		return nil
	}
	return v.Kind.Knowledge().Of()
}

// direction returns the direction of the operation.
func (op Op) direction() link.Direction {
	if op.Verb == value.Delete {
		return link.Delete
	}
	return link.Apply
}
