package models

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A table holds all models, indexed by the names that people and messages use.
type table struct {
	all       []*Model // by name
	byName    map[string]*Model
	byPrefix  map[string]*Model
	byMessage map[protoreflect.FullName]*Model
	byField   map[configField]*Model
	groups    []string            // of the structured form
	fields    map[string][]string // of a group, by its name with underscores
}

// models returns the table; it is built at the first use, and never changes.
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
	var v V
	return &Model{
		Class: "config", Module: module, Version: version, Type: typ,
		prefix:  prefixOf("config", module, version, typ),
		message: v.ProtoReflect().Type(),
		config:  strings.Fields(fields),
	}
}
