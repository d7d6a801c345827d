package readback

import (
	"slices"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// leastPatience is how long all operations of a connection wait for those that are running, before what was changed is read back.
// If one of them takes longer, it may take half a minute. Each time that they waited in vain, the next read-back has them wait twice
// as long: where all operations take long, none would ever find the connection without one.
const leastPatience = time.Second

// next returns the connection that r reads next; nil: it has read all. One that was found ready again is read even if it has no
// values.
func (r *Reading) next() *kind.Connection {
	if _, wanted := r.connections[r.joins]; wanted && !r.reads(r.joins) {
		return r.joins
	}
	if len(r.parts) == 0 {
		return nil
	}
	return r.parts[0].Of.Connection
}

// reads reports whether r has parts of a connection left.
func (r *Reading) reads(c *kind.Connection) bool {
	return slices.ContainsFunc(r.parts, func(p Part) bool { return p.Of.Connection == c })
}

// claim makes r the reader of a connection, instead of another one. No verb of a connection begins while it has a reader, and
// Retrieve waits until the running ones have ended: so a result is never older than the effect of a verb.
func (rb *Reader) claim(r *Reading, c *kind.Connection) bool {
	if r.has(c) {
		return true
	}
	for other := range r.connections { // two readings that waited for each other's connections would wait for ever
		rb.unclaim(r, other)
	}
	if !r.mayClaim(c) {
		return false
	}
	c.Reading = r
	if r.rests {
		c.Rest.Claim()
	}
	rb.Graph.BeginRead(&c.Connection)
	return true
}

// has reports whether r is the reader of a connection.
func (r *Reading) has(c *kind.Connection) bool { return c.Reading == any(r) }

// mayClaim reports whether no other reading has a connection, and it has no verbs for which a reading has waited for too long. On one that
// was found ready again, no other verb could begin.
func (r *Reading) mayClaim(c *kind.Connection) bool {
	return c.Reading == nil && (!c.HasOld() || c == r.joins)
}

// unclaim lets verbs of a connection begin again, if r is its reader.
func (rb *Reader) unclaim(r *Reading, c *kind.Connection) {
	if !r.has(c) {
		return
	}
	c.Reading, r.until = nil, time.Time{}
	rb.Graph.EndRead(&c.Connection)
}

// awaitVerbs is called while r waits for verbs of c that are running. When that has taken too long, other verbs may begin before
// they have ended.
func (rb *Reader) awaitVerbs(r *Reading, c *kind.Connection) {
	if r.until.IsZero() {
		c.Patience = max(c.Patience, leastPatience)
		r.until = time.Now().Add(c.Patience)
		time.AfterFunc(c.Patience, rb.calls.ready.Set)
	}
	if !r.isImpatient(c) {
		return
	}
	c.Patience *= 2
	c.Age()
	rb.unclaim(r, c)
}

// isImpatient reports that r has waited too long for verbs of c.
func (r *Reading) isImpatient(c *kind.Connection) bool {
	return c != r.joins && !r.until.IsZero() && !time.Now().Before(r.until)
}

// leave removes the parts of a connection that was lost.
func (rb *Reader) leave(r *Reading, c *kind.Connection) {
	r.parts = slices.DeleteFunc(r.parts, func(p Part) bool { return p.Of.Connection == c })
	rb.unclaim(r, c)
	rb.end(r, c)
}

// release ends the reading of the claimed connections that have no parts left.
func (rb *Reader) release(r *Reading) {
	for c := range r.connections {
		if r.has(c) && !r.reads(c) {
			rb.settle(c)
			rb.unclaim(r, c)
			rb.end(r, c)
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
		if c.Other {
			for _, n := range rb.Graph.Of(d) {
				if n.Actual() != nil && n.Base() == nil {
					rb.Graph.NotFound(n.Key())
					d.Index.Drop(d.NameIn(n.Key()))
				}
			}
		}
		rb.Graph.Known(d)
	}
	c.Other = false
}
