// Package models defines the values: their keys, names, messages and JSON form.
//
//	all := models.BuiltIn()
//	m, name, ok := all.ByKey("config/linux/l3/v2/route/10.2.0.0/16/veth1")
//	m.Name(), name, ok                          // linux.l3.route, 10.2.0.0/16/veth1, true
//	v, err := all.Decode(key, data)             // parsed, and checked to belong under key
//	key, err := m.Key(v)                        // the key that the content of v makes
//	routes := models.For[*l3.Route]()           // a built-in model, if the type is known
//
// The built-in models are listed in linux.go, vpp.go, vpp_services.go and others.go. A
// program adds models of its own with [Define] and [Registry.With], and passes the
// [Registry] to the parts that read values. A [Model] and a Registry never change and may
// be used by many goroutines. Values belong to the caller.
//
// A key is the prefix of a model followed by the name of a value:
//
//	part       example                     origin
//	class      config                      the model
//	module     linux/l3                    the model
//	version    v2                          the model
//	type       route                       the model
//	name       10.2.0.0/16/veth1           the content of the value
//
// Keys in this package lack the agent's prefix "/vnf-agent/<label>/". A value is rejected
// if its content does not make its key.
//
// Tests compare keys, messages and field numbers with the golden tables of the wire format
// in testdata, and every name with the template that clients receive.
package models

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Model is one kind of item, such as linux.l3.route.
type Model struct {
	Class, Module, Version, Type string

	prefix   string
	template string
	name     func(proto.Message) string // nil for a singleton
	source   string                     // of a Definition
	late     func() *late
}

// A late part of a model is made at its first use. A model may be a package variable, and those are
// initialised before the generated code of the messages in the same package.
type late struct {
	message protoreflect.MessageType
	config  []string // names of its field in the structured form, the first is the one to write
	fault   error    // of its definition; Registry.With returns it
}

// message returns the type of the values.
func (m *Model) message() protoreflect.MessageType { return m.late().message }

// Of is a Model with values of type V.
type Of[V proto.Message] struct{ *Model }

// Name is module and type: "linux.l3.route".
func (m *Model) Name() string { return m.Module + "." + m.Type }

// Prefix is the start of the keys of the model: "config/linux/l3/v2/route/". For a
// singleton it is the whole key, without a trailing slash.
func (m *Model) Prefix() string { return m.prefix }

// Singleton reports that the model has exactly one value, without a name.
func (m *Model) Singleton() bool { return m.name == nil }

// NameTemplate describes to clients how the content makes the name, as a text/template:
// "{{.Interface}}/{{.IpAddress}}". Empty for a singleton.
func (m *Model) NameTemplate() string { return m.template }

// ProtoName is the full name of the message: "ligato.linux.l3.Route".
func (m *Model) ProtoName() string { return string(m.message().Descriptor().FullName()) }

// ProtoFile is the file that declares the message: "ligato/linux/l3/route.proto".
func (m *Model) ProtoFile() string { return m.message().Descriptor().ParentFile().Path() }

// Source is the text of that file, or "" if the definition of the model lacks it, as those of the
// built-in models do.
func (m *Model) Source() string { return m.source }

// New returns an empty value of the model.
func (m *Model) New() proto.Message { return m.message().New().Interface() }

// is reports whether v is a value of the model.
func (m *Model) is(v proto.Message) bool {
	return v != nil && v.ProtoReflect().Type() == m.message()
}

// prefixOf joins the parts of the prefix.
func prefixOf(class, module, version, typ string) string {
	return class + "/" + strings.ReplaceAll(module, ".", "/") + "/" + version + "/" + strings.ReplaceAll(typ, ".", "/")
}
