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

// mayClaim reports whether no other reading holds one of the connections, and none has verbs for which a reading has waited for
// too long.
func (r *Reading) mayClaim() bool {
	for c := range r.connections {
		if c.Reading != nil || c.HasOld() && !r.joins {
			return false
		}
	}
	return true
}

// awaitVerbs is called while r waits for verbs of c that are running. When that has taken too long, other verbs may begin before
// they have ended. On a connection that was found ready again, none could begin.
func (rb *Reader) awaitVerbs(r *Reading, c *kind.Connection) {
	if r.until.IsZero() {
		c.Patience = max(c.Patience, leastPatience)
		r.until = time.Now().Add(c.Patience)
		time.AfterFunc(c.Patience, rb.calls.ready.Set)
	}
	if !r.isImpatient() {
		return
	}
	c.Patience *= 2
	r.claimed, r.until = false, time.Time{}
	for c := range r.connections {
		if c.Reading == any(r) {
			c.Reading = nil
			c.Age()
			rb.Graph.EndRead(&c.Connection)
		}
	}
}

// isImpatient reports that r has waited too long for verbs.
func (r *Reading) isImpatient() bool {
	return !r.joins && !r.until.IsZero() && !time.Now().Before(r.until)
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
