package readback

import (
	"maps"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// WantSoon has r read back next those of the descriptors, for which notifications ask, whose connections do not rest, with what
// has waited for that. It reports whether there are any. The others are asked for again in time.
func (rb *Reader) WantSoon(r *Reading, asked []*kind.Descriptor) bool {
	if len(asked) == 0 {
		return false
	}
	due := map[string]bool{}
	for _, d := range asked {
		rest := &d.Connection.Rest
		if now, after := rest.Ask(d.Name); now {
			due[d.Name] = true
			maps.Copy(due, rest.Take())
		} else if after > 0 {
			rb.askAfter(after, d.Name)
		}
	}
	rb.Want(r, rb.Everything(rb.Registry.Named(due)), nil)
	r.rests = true
	for c := range r.connections {
		c.Rest.Begin()
	}
	return r.Wanted()
}

// Instead returns the descriptor that must be read back instead of using an observation of a value of d, whose node is n or nil; nil:
// it can be used. outdated: it may be older than the effect of a verb.
func Instead(o kind.Observation, d *kind.Descriptor, n *graph.Node, outdated bool) *kind.Descriptor {
	if by := readBy(d, n); outdated && by != nil {
		return by
	}
	if _, known := d.MetaOf(o, n); o.Value != nil && !known && d.Retrieve != nil {
		return d // for the metadata
	}
	return nil
}

// readBy returns the descriptor that reads a value of d back: that of its base if d cannot; nil: none can.
func readBy(d *kind.Descriptor, n *graph.Node) *kind.Descriptor {
	for d.Retrieve == nil {
		if n == nil || n.Base() == nil || kind.Of(n.Base()) == nil {
			return nil
		}
		n = n.Base()
		d = kind.Of(n)
	}
	return d
}

// end notes that r reads a connection no more.
func (rb *Reader) end(r *Reading, c *kind.Connection) {
	delete(r.connections, c)
	if !r.rests {
		return
	}
	if name, rest := c.Rest.End(); name != "" {
		rb.askAfter(rest, name)
	}
}

// askAfter asks for a descriptor later. What else waits on its connection comes with it.
func (rb *Reader) askAfter(rest time.Duration, name string) {
	time.AfterFunc(rest, func() { rb.Again(name) })
}
