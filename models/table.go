package models

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A table holds all models, found by what people and messages call them.
type table struct {
	all       []*Model // by name
	byName    map[string]*Model
	byPrefix  map[string]*Model
	byMessage map[protoreflect.FullName]*Model
	byField   map[configField]*Model
	groups    []string            // of the structured form
	fields    map[string][]string // of a group, by its name with underscores
}

// models is the table; it is built when first asked for, and never changes.
var models = sync.OnceValue(func() *table {
	t := &table{
		all:       slices.Concat(linuxModels(), vppModels(), vppServiceModels(), otherModels()),
		byName:    map[string]*Model{},
		byPrefix:  map[string]*Model{},
		byMessage: map[protoreflect.FullName]*Model{},
		byField:   map[configField]*Model{},
		fields:    map[string][]string{},
	}
	slices.SortFunc(t.all, func(a, b *Model) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, m := range t.all {
		t.byName[m.Name()] = m
		t.byPrefix[m.prefix] = m
		t.byMessage[m.message.Descriptor().FullName()] = m
		t.addConfigField(m)
	}
	slices.Sort(t.groups)
	return t
})

// keyed is a model with a value for each name. The name is given twice, as a
// template to tell clients and as code to run; a test holds them together.
// fields is how the structured form calls it, and other names it goes by there.
func keyed[V proto.Message](module, version, typ, template, fields string, name func(V) string) *Model {
	m := singleton[V](module, version, typ, fields)
	m.prefix += "/"
	m.template = template
	m.name = func(v proto.Message) string { return name(v.(V)) }
	return m
}

// singleton is a model with one value, under the prefix itself.
func singleton[V proto.Message](module, version, typ, fields string) *Model {
	var v V
	return &Model{
		Class: "config", Module: module, Version: version, Type: typ,
		prefix:  prefixOf("config", module, version, typ),
		message: v.ProtoReflect().Type(),
		config:  strings.Fields(fields),
	}
}
