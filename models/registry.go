package models

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Registry is a set of models, indexed by the names that people and messages use. It never
// changes, and may be used by many goroutines. The parts of a program that read values of
// arbitrary models share one Registry: stores, the scheduler and the northbounds.
type Registry struct {
	all       []*Model // by name
	byName    map[string]*Model
	byPrefix  map[string]*Model
	deepest   int // elements of the longest prefix
	byMessage map[protoreflect.FullName]*Model
	byField   map[configField]*Model
	groups    []string            // of the structured form
	fields    map[string][]string // of a group, by its name with underscores
}

// builtIn is created at the first use.
var builtIn = sync.OnceValue(func() *Registry {
	return index(slices.Concat(linuxModels(), vppModels(), vppServiceModels(), otherModels()))
})

// BuiltIn returns the models of this module.
func BuiltIn() *Registry { return builtIn() }

// With returns a Registry with the models of r and more. The error joins the faults of the
// definitions, and the models that claim the name, the keys, the message or the field of
// another one.
func (r *Registry) With(more ...*Model) (*Registry, error) {
	all := slices.Clone(r.all)
	var errs []error
	for _, m := range more {
		err := m.late().fault
		for _, other := range all {
			err = cmp.Or(err, m.clash(other))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("model %s: %w", m.Name(), err))
			continue
		}
		all = append(all, m)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return index(all), nil
}

// clash returns an error if m and another model claim the same.
func (m *Model) clash(other *Model) error {
	switch {
	case m.Name() == other.Name():
		return errors.New("another model has this name")
	case nested(m.prefix, other.prefix):
		return fmt.Errorf("its keys %s and those of %s, %s, overlap", m.prefix, other.Name(), other.prefix)
	case m.ProtoName() == other.ProtoName():
		return fmt.Errorf("its message %s is that of %s: expected a message of its own", m.ProtoName(), other.Name())
	}
	for _, name := range m.configFields() {
		if slices.Contains(other.configFields(), name) {
			return fmt.Errorf("its field %s in %s is that of %s", name.field, name.group, other.Name())
		}
	}
	return nil
}

// nested reports whether one prefix begins with the other, element by element.
func nested(a, b string) bool {
	a, b = strings.TrimSuffix(a, "/")+"/", strings.TrimSuffix(b, "/")+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// index makes a registry. All maps are complete before it is returned, and never change.
func index(all []*Model) *Registry {
	r := &Registry{
		all:       all,
		byName:    map[string]*Model{},
		byPrefix:  map[string]*Model{},
		byMessage: map[protoreflect.FullName]*Model{},
		byField:   map[configField]*Model{},
		fields:    map[string][]string{},
	}
	slices.SortFunc(r.all, func(a, b *Model) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, m := range r.all {
		r.byName[m.Name()] = m
		r.byPrefix[m.prefix] = m
		r.deepest = max(r.deepest, strings.Count(m.prefix, "/"))
		r.byMessage[m.message().Descriptor().FullName()] = m
		r.addConfigField(m)
	}
	slices.Sort(r.groups)
	return r
}

// keyed returns a model with a value for each name. The name is defined twice, as a
// template for clients and as code; a test compares both. fields lists the names of its
// field in the structured form.
func keyed[V proto.Message](module, version, typ, template, fields string, name func(V) string) *Model {
	m := singleton[V](module, version, typ, fields)
	m.prefix += "/"
	m.template = template
	m.name = func(v proto.Message) string { return name(v.(V)) }
	return m
}

// singleton returns a model with one value, under the prefix itself.
func singleton[V proto.Message](module, version, typ, fields string) *Model {
	return &Model{
		Class: "config", Module: module, Version: version, Type: typ,
		prefix: prefixOf("config", module, version, typ),
		late: sync.OnceValue(func() *late {
			var v V
			return &late{message: v.ProtoReflect().Type(), config: strings.Fields(fields)}
		}),
	}
}
