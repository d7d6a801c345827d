package kind

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/size"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// ErrMisuse is the error of wrong calls; see scheduler.ErrMisuse.
var ErrMisuse = errors.New("misuse of the scheduler")

// A Registry finds the descriptor of a key. The zero value is empty. Add and Sort come before
// all other methods, which only read.
type Registry struct {
	All      []*Descriptor // in order of registration
	Order    []*Descriptor // in order of retrieval; set by Run
	byPrefix map[string][]*Descriptor
	Sizes    size.Types // counts values that are declared
	shared   *value.Shared

	withProperties []*Descriptor
}

// Add registers d. It returns ErrMisuse if another descriptor has the name or the keys.
func (r *Registry) Add(d *Descriptor) error {
	for _, o := range r.All {
		if o.Name == d.Name || o.Prefix == d.Prefix && (o.Match == nil || d.Match == nil) {
			return fmt.Errorf("%w: descriptor %q already has this name or these keys", ErrMisuse, o.Name)
		}
	}
	if r.byPrefix == nil {
		r.byPrefix, r.shared = map[string][]*Descriptor{}, value.NewShared()
	}
	r.All = append(r.All, d)
	r.byPrefix[d.Prefix] = append(r.byPrefix[d.Prefix], d)
	if len(d.Properties) > 0 {
		r.withProperties = append(r.withProperties, d)
	}
	return nil
}

// Of returns the descriptor of key, or nil. The longest prefix wins.
func (r *Registry) Of(key string) *Descriptor {
	if d := r.match(key, key); d != nil {
		return d
	}
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] != '/' {
			continue
		}
		if d := r.match(key[:i+1], key); d != nil {
			return d
		}
	}
	return nil
}

// match returns the descriptor of key among those with exactly this prefix. Several may
// share one, if their Match functions accept different keys.
func (r *Registry) match(prefix, key string) *Descriptor {
	for _, d := range r.byPrefix[prefix] {
		if d.Has(key) {
			return d
		}
	}
	return nil
}

// KindOf implements graph.Keys.
func (r *Registry) KindOf(key string) graph.Kind {
	if d := r.Of(key); d != nil {
		return d
	}
	for _, d := range r.withProperties {
		if slices.ContainsFunc(d.Properties, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			return d
		}
	}
	return nil
}

// Origin returns the key of the value with which a key, or those that begin with a prefix, come; "": of none.
func (r *Registry) Origin(keyOrPrefix string) string {
	for _, d := range r.All {
		if d.Origin == nil {
			continue
		}
		if base := d.Origin(keyOrPrefix); base != "" {
			return base
		}
	}
	return ""
}

// KindsUnder implements graph.Keys.
func (r *Registry) KindsUnder(prefix string) iter.Seq[graph.Kind] {
	overlaps := func(other string) bool { return strings.HasPrefix(other, prefix) || strings.HasPrefix(prefix, other) }
	return func(yield func(graph.Kind) bool) {
		for _, d := range r.All {
			if (overlaps(d.Prefix) || slices.ContainsFunc(d.Properties, overlaps)) && !yield(d) {
				return
			}
		}
	}
}

// Sort computes the order of retrieval: by RetrieveAfter, else by name.
func (r *Registry) Sort() error {
	sorted := slices.SortedFunc(slices.Values(r.All), func(a, b *Descriptor) int { return strings.Compare(a.Name, b.Name) })
	byName := map[string]*Descriptor{}
	for _, d := range sorted {
		byName[d.Name] = d
	}
	var out []*Descriptor
	entered := map[string]bool{}
	var visit func(d *Descriptor, path []string) error
	visit = func(d *Descriptor, path []string) error {
		path = append(path, d.Name)
		if slices.Contains(out, d) {
			return nil
		}
		if entered[d.Name] {
			return fmt.Errorf("descriptors retrieve after each other in a cycle: %s", strings.Join(path, ", "))
		}
		entered[d.Name] = true
		for _, name := range d.After {
			before := byName[name]
			if before == nil {
				return fmt.Errorf("%w: RetrieveAfter of descriptor %q: no descriptor is named %q", ErrMisuse, d.Name, name)
			}
			if err := visit(before, path); err != nil {
				return err
			}
		}
		out = append(out, d)
		return nil
	}
	for _, d := range sorted {
		if err := visit(d, nil); err != nil {
			return err
		}
	}
	r.Order = out
	return nil
}

// CheckNames returns ErrMisuse if a name is unknown.
func (r *Registry) CheckNames(names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(r.All, func(d *Descriptor) bool { return d.Name == name }) {
			return fmt.Errorf("%w: no descriptor is named %q", ErrMisuse, name)
		}
	}
	return nil
}

// Named returns the descriptors with these names; nil: all.
func (r *Registry) Named(names map[string]bool) []*Descriptor {
	if names == nil {
		return r.Order
	}
	var out []*Descriptor
	for _, d := range r.Order {
		if names[d.Name] {
			out = append(out, d)
		}
	}
	return out
}

// Nodes yields the nodes of g that have a descriptor, in no particular order. They must not change
// meanwhile.
func (r *Registry) Nodes(g *graph.Graph) iter.Seq[*graph.Node] {
	return func(yield func(*graph.Node) bool) {
		for _, d := range r.Order {
			for _, n := range g.Of(d) {
				if !yield(n) {
					return
				}
			}
		}
	}
}
