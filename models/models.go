// Package models says what a value is: under which key it lives, which name
// tells it from its like, which message it is, and how it reads as JSON.
//
//	m, name, ok := models.ByKey("config/linux/l3/v2/route/10.2.0.0/16/veth1")
//	m.Name(), name, ok                          // linux.l3.route, 10.2.0.0/16/veth1, true
//	v, err := models.Decode(key, data)          // parsed, and known to belong under key
//	key, err := m.Key(v)                        // the key that the content of v makes
//	routes := models.For[*l3.Route]()           // for who knows the type
//
// The models are listed in linux.go, vpp.go, vpp_services.go and others.go; none can be added
// while the agent runs. A [Model] never changes and may be used by many
// goroutines. Values belong to who asked for them.
//
// A key is the prefix of a model and the name of a value: class, module,
// version and type, then what the content of the value says. Keys here are
// without the agent's own prefix "/vnf-agent/<label>/". A value under a key that
// its content does not make is refused.
//
// Tests compare keys, messages and field numbers with the wire's golden tables
// in testdata, and every name with the template that describes it to clients.
package models

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Model is one sort of item, such as linux.l3.route.
type Model struct {
	Class, Module, Version, Type string

	prefix   string
	template string
	name     func(proto.Message) string // nil for a singleton
	message  protoreflect.MessageType
	config   []string // names of its field in the structured form, the first is the one to write
}

// Of is a Model whose values are known to be of type V.
type Of[V proto.Message] struct{ *Model }

// Name is module and type: "linux.l3.route".
func (m *Model) Name() string { return m.Module + "." + m.Type }

// Prefix is what the keys of the model begin with: "config/linux/l3/v2/route/".
// The one key of a singleton is its prefix, without a trailing slash.
func (m *Model) Prefix() string { return m.prefix }

// Singleton tells that there is one value of the model, and that it has no name.
func (m *Model) Singleton() bool { return m.name == nil }

// NameTemplate is how the name is made of the content, as a text/template that
// clients are told: "{{.Interface}}/{{.IpAddress}}". Empty for a singleton.
func (m *Model) NameTemplate() string { return m.template }

// ProtoName is the full name of the message: "ligato.linux.l3.Route".
func (m *Model) ProtoName() string { return string(m.message.Descriptor().FullName()) }

// ProtoFile is the file that declares the message: "ligato/linux/l3/route.proto".
func (m *Model) ProtoFile() string { return m.message.Descriptor().ParentFile().Path() }

// New returns an empty value of the model.
func (m *Model) New() proto.Message { return m.message.New().Interface() }

func (m *Model) is(v proto.Message) bool {
	return v != nil && v.ProtoReflect().Type() == m.message
}

// prefixOf joins what the keys of a model have in common.
func prefixOf(class, module, version, typ string) string {
	return class + "/" + strings.ReplaceAll(module, ".", "/") + "/" + version + "/" + strings.ReplaceAll(typ, ".", "/")
}
