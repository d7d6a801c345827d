package scheduler

import (
	"fmt"
	"slices"
	"strings"
)

// registry finds the descriptor of a key.
type registry struct {
	all      []*descriptor // in order of registration
	order    []*descriptor // in order of retrieval; set by Run
	byPrefix map[string][]*descriptor
}

func (r *registry) add(d *descriptor) error {
	for _, o := range r.all {
		if o.name == d.name || o.prefix == d.prefix && (o.match == nil || d.match == nil) {
			return fmt.Errorf("%w: %q", ErrDuplicate, o.name)
		}
	}
	if r.byPrefix == nil {
		r.byPrefix = map[string][]*descriptor{}
	}
	r.all = append(r.all, d)
	r.byPrefix[d.prefix] = append(r.byPrefix[d.prefix], d)
	return nil
}

// of returns the descriptor of key, or nil. The longest prefix wins.
func (r *registry) of(key string) *descriptor {
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

func (r *registry) match(prefix, key string) *descriptor {
	for _, d := range r.byPrefix[prefix] {
		if d.has(key) {
			return d
		}
	}
	return nil
}

func (d *descriptor) has(key string) bool {
	if d.singleton {
		return key == d.prefix
	}
	return len(key) > len(d.prefix) && (d.match == nil || d.match(key))
}

func (d *descriptor) nameIn(key string) string { return strings.TrimPrefix(key, d.prefix) }

// sort computes the order of retrieval: by RetrieveAfter, else by name.
func (r *registry) sort() error {
	sorted := slices.SortedFunc(slices.Values(r.all), func(a, b *descriptor) int { return strings.Compare(a.name, b.name) })
	byName := map[string]*descriptor{}
	for _, d := range sorted {
		byName[d.name] = d
	}
	var out []*descriptor
	entered := map[string]bool{}
	var visit func(d *descriptor, path []string) error
	visit = func(d *descriptor, path []string) error {
		path = append(path, d.name)
		if slices.Contains(out, d) {
			return nil
		}
		if entered[d.name] {
			return fmt.Errorf("descriptors retrieve after each other in a cycle: %s", strings.Join(path, ", "))
		}
		entered[d.name] = true
		for _, name := range d.after {
			before := byName[name]
			if before == nil {
				return fmt.Errorf("descriptor %q: RetrieveAfter: %q: %w", d.name, name, ErrUnknownDescriptor)
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
	r.order = out
	return nil
}

// checkNames returns ErrUnknownDescriptor if a name is unknown.
func (r *registry) checkNames(names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(r.all, func(d *descriptor) bool { return d.name == name }) {
			return fmt.Errorf("%q: %w", name, ErrUnknownDescriptor)
		}
	}
	return nil
}

// named returns the descriptors with these names; nil: all.
func (r *registry) named(names map[string]bool) []*descriptor {
	if names == nil {
		return r.order
	}
	var out []*descriptor
	for _, d := range r.order {
		if names[d.name] {
			out = append(out, d)
		}
	}
	return out
}
