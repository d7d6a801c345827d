package readback

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A Line is one connection by its name, whether or not it can be lost. The scheduler's goroutine
// owns it.
type Line struct {
	Link    graph.Connection
	Losable bool // it is a connection that can be lost
	Same    bool // it leads to the same system as before the last loss
	Verbs   int  // verbs that have begun and have neither ended nor been abandoned

	holder *Reading // reads its values back; nil: none does
}

// Lines are the lines of a scheduler, by the names of their connections.
type Lines map[string]*Line

// Named returns the line with this name, which may be new.
func (ls Lines) Named(name string) *Line {
	if ls[name] == nil {
		ls[name] = &Line{}
	}
	return ls[name]
}

// LineOf returns the line of a descriptor.
func LineOf(d *kind.Descriptor) *Line { return d.Line.(*Line) }

// claim makes r the reader of its lines, all or none. No verb of a line begins while it has
// a reader, and Retrieve waits until the running ones have ended: so a result is never older
// than the effect of a verb. Lines that were lost since r wanted to read them are left out.
func (rb *Reader) claim(r *Reading) bool {
	if r.claimed {
		return true
	}
	if !r.mayClaim() {
		return false
	}
	r.claimed = true
	for l := range r.lines {
		if l.Link.Losses() != r.lines[l] {
			r.leave(l)
			continue
		}
		l.holder = r
		rb.Graph.BeginRead(&l.Link)
	}
	return true
}

// mayClaim reports whether no other reading holds one of the lines.
func (r *Reading) mayClaim() bool {
	for l := range r.lines {
		if l.holder != nil {
			return false
		}
	}
	return true
}

// leave removes the parts of a line that was lost.
func (r *Reading) leave(l *Line) {
	r.parts = slices.DeleteFunc(r.parts, func(p Part) bool { return LineOf(p.Of) == l })
}

// release ends the reading of the lines that have no parts left.
func (rb *Reader) release(r *Reading) {
	for l := range r.lines {
		left := slices.ContainsFunc(r.parts, func(p Part) bool { return LineOf(p.Of) == l })
		if left {
			continue
		}
		delete(r.lines, l)
		if l.holder == r {
			l.holder = nil
			rb.settle(l)
			rb.Graph.EndRead(&l.Link)
		}
	}
}

// settle decides about the kinds of a line that cannot be read back. What they had stands if the line leads to
// the same system as before; else it has gone with that.
func (rb *Reader) settle(l *Line) {
	if l.Link.Lost() {
		return
	}
	for _, d := range rb.Registry.Order {
		if LineOf(d) != l || d.Retrieve != nil || !d.Known.Unknown() {
			continue
		}
		if !l.Same {
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
