package readback

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// claim makes r the reader of its connections, all or none. No verb of a connection begins while it has
// a reader, and Retrieve waits until the running ones have ended: so a result is never older
// than the effect of a verb. Connections that were lost since r wanted to read them are left out.
func (rb *Reader) claim(r *Reading) bool {
	if r.claimed {
		return true
	}
	if !r.mayClaim() {
		return false
	}
	r.claimed = true
	for c := range r.connections {
		if c.Losses() != r.connections[c] {
			r.leave(c)
			continue
		}
		c.Reading = r
		rb.Graph.BeginRead(&c.Connection)
	}
	return true
}

// mayClaim reports whether no other reading holds one of the connections.
func (r *Reading) mayClaim() bool {
	for c := range r.connections {
		if c.Reading != nil {
			return false
		}
	}
	return true
}

// leave removes the parts of a connection that was lost.
func (r *Reading) leave(c *kind.Connection) {
	r.parts = slices.DeleteFunc(r.parts, func(p Part) bool { return p.Of.Connection == c })
}

// release ends the reading of the connections that have no parts left.
func (rb *Reader) release(r *Reading) {
	for c := range r.connections {
		left := slices.ContainsFunc(r.parts, func(p Part) bool { return p.Of.Connection == c })
		if left {
			continue
		}
		delete(r.connections, c)
		if c.Reading == any(r) {
			c.Reading = nil
			rb.settle(c)
			rb.Graph.EndRead(&c.Connection)
		}
	}
}

// settle decides about the kinds of a connection that cannot be read back. What they had stands if it leads to
// the same system as before; else it has gone with that.
func (rb *Reader) settle(c *kind.Connection) {
	if c.Lost() {
		return
	}
	for _, d := range rb.Registry.Order {
		if d.Connection != c || d.Retrieve != nil || !d.Known.Unknown() {
			continue
		}
		if !c.Same {
			for _, n := range rb.Graph.Of(d) {
				if n.Actual() != nil && n.Base() == nil {
					rb.Graph.NotFound(n.Key())
					d.Index.Drop(d.NameIn(n.Key()))
				}
			}
		}
		rb.Graph.Known(d)
	}
}
