package readback

import (
	"cmp"
	"maps"
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A Part is the values of one descriptor that are read back together.
type Part struct {
	Of *kind.Descriptor
	// Keys limits the part; nil: all values of the descriptor.
	Keys map[string]bool
	// Most is about the memory, in bytes, that the values may take. 0: no bound.
	Most int64
}

// Everything reads back all values of these descriptors, and their derived values that
// have a Retrieve of their own. The parts are in the order of RetrieveAfter.
func (rb *Reader) Everything(ds []*kind.Descriptor) []Part {
	wanted := map[*kind.Descriptor]bool{}
	for _, d := range ds {
		wanted[d] = true
	}
	if len(ds) < len(rb.Registry.Order) {
		for _, d := range ds {
			for _, n := range rb.Graph.Of(d) {
				for part := range rb.Graph.Derived(n) {
					wanted[kind.Of(part)] = true
				}
			}
		}
	}
	var out []Part
	for _, d := range rb.Registry.Order {
		if wanted[d] {
			out = append(out, Part{Of: d})
		}
	}
	return out
}

// EverythingAfter is Everything for the descriptors of a connection, and for those of others that are to be read after these: what
// they find depends on them.
func (rb *Reader) EverythingAfter(c *kind.Connection) []Part {
	wanted := map[string]bool{}
	var ds []*kind.Descriptor
	for _, d := range rb.Registry.Order { // each one follows those after which it is read
		if d.Connection == c || slices.ContainsFunc(d.After, func(name string) bool { return wanted[name] }) {
			wanted[d.Name] = true
			ds = append(ds, d)
		}
	}
	return rb.Everything(ds)
}

// grouped returns the parts in an order of RetrieveAfter in which a connection comes as few times as possible: each time, its verbs
// wait.
func grouped(parts []Part) (out []Part) {
	for len(parts) > 0 {
		c := parts[0].Of.Connection
		var later []Part
		after := map[string]bool{} // names of later
		for _, p := range parts {
			if p.Of.Connection != c || slices.ContainsFunc(p.Of.After, func(name string) bool { return after[name] }) {
				later = append(later, p)
				after[p.Of.Name] = true
			} else {
				out = append(out, p)
			}
		}
		parts = later
	}
	return out
}

// For reads back the values that failed verbs may have changed: the key of each
// node and its derived values. A derived value without Retrieve is read back with its
// base.
func (rb *Reader) For(failed []*graph.Node) []Part {
	keys := map[*kind.Descriptor]map[string]bool{}
	var add func(n *graph.Node)
	add = func(n *graph.Node) {
		if d := kind.Of(n); d != nil && d.Retrieve != nil {
			if keys[d] == nil {
				keys[d] = map[string]bool{}
			}
			keys[d][n.Key()] = true
		}
		for part := range rb.Graph.Derived(n) {
			add(part)
		}
	}
	for _, n := range failed {
		if n.Hung() || executor.HasNoEffect(n.Err()) {
			continue // a running verb is read back when it returns
		}
		for n.Base() != nil && (kind.Of(n) == nil || kind.Of(n).Retrieve == nil) {
			n = n.Base()
		}
		add(n)
	}
	var out []Part
	for _, d := range rb.Registry.Order {
		if keys[d] != nil {
			out = append(out, Part{Of: d, Keys: keys[d]})
		}
	}
	return out
}

// nodesOf returns the nodes with an actual state that the part decides.
func (rb *Reader) nodesOf(p Part) []*graph.Node {
	if p.Keys == nil && p.Of.Verbs.Hung() == 0 {
		return rb.Graph.Of(p.Of)
	}
	if p.Keys == nil {
		return slices.DeleteFunc(slices.Clone(rb.Graph.Of(p.Of)), (*graph.Node).Hung)
	}
	out := make([]*graph.Node, 0, len(p.Keys))
	for _, key := range slices.Sorted(maps.Keys(p.Keys)) {
		if n := rb.Graph.Node(key); n != nil && !n.Hung() {
			out = append(out, n)
		}
	}
	return out
}

// desiredOf returns the desired values of a part, for Retrieve. Values in coming, which are about to
// be declared, count as desired.
func (rb *Reader) desiredOf(p Part, coming Coming) (ws []kind.Desired) {
	asked := rb.nodesOf(p)
	if p.Keys != nil && p.Of.RetrieveSome == nil {
		asked = rb.Graph.Of(p.Of) // Retrieve needs all desired values
	}
	values := coming.of(p.Of)
	ws = make([]kind.Desired, 0, len(values)+len(asked))
	for _, v := range values {
		if loses(rb.Graph.Node(v.Key)) {
			continue
		}
		ws = append(ws, kind.Desired{Key: v.Key, Value: kind.Message(v)})
	}
	for _, n := range asked {
		if v := n.Desired(); v != nil && v.Err() == nil && coming.get(p.Of, n.Key()) == nil && !loses(n) {
			ws = append(ws, kind.Desired{Key: n.Key(), Value: kind.Message(v)})
		}
	}
	return oneOfEach(p.Of, ws)
}

// oneOfEach leaves one value of each identity: the one with the lowest key, which gets the claim if nobody
// has it. What is found cannot be that of several.
func oneOfEach(d *kind.Descriptor, ws []kind.Desired) []kind.Desired {
	if d.IdentityOf == nil {
		return ws
	}
	first := make(map[string]string, len(ws))
	id := func(w kind.Desired) string { return cmp.Or(d.IdentityOf(w.Key, w.Value).Resource, w.Key) }
	for _, w := range ws {
		if key, twice := first[id(w)]; !twice || w.Key < key {
			first[id(w)] = w.Key
		}
	}
	if len(first) == len(ws) {
		return ws
	}
	return slices.DeleteFunc(ws, func(w kind.Desired) bool { return first[id(w)] != w.Key })
}

// loses reports that another value has what n claims, so that what is found is not that of n.
func loses(n *graph.Node) bool { return n != nil && n.LosesClaim() && n.Actual() == nil }

// WithoutAnswer returns the names of d and of the descriptors that are not asked if d gets no
// answer.
func (rb *Reader) WithoutAnswer(d *kind.Descriptor) []string {
	names := []string{d.Name}
	for _, other := range rb.Registry.Order { // each one follows those after which it is read
		isAfter := slices.ContainsFunc(other.After, func(name string) bool { return slices.Contains(names, name) })
		if other != d && (isAfter || d.Connection.Losable && other.Connection == d.Connection) {
			names = append(names, other.Name)
		}
	}
	return names
}
