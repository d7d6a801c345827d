package models

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// All returns every model, sorted by name.
func (r *Registry) All() []*Model { return slices.Clone(r.all) }

// ByName returns the model with the given name, such as "linux.l3.route".
func (r *Registry) ByName(name string) (*Model, bool) {
	m, ok := r.byName[name]
	return m, ok
}

// Has reports whether r has the model m, or one with an equal definition.
func (r *Registry) Has(m *Model) bool {
	have, ok := r.byName[m.Name()]
	return ok && have.prefix == m.prefix && have.template == m.template && have.message() == m.message()
}

// For returns the built-in model of message type V. It panics if there is none.
func For[V proto.Message]() Of[V] {
	var v V
	m, ok := BuiltIn().ForMessage(v)
	if !ok {
		panic(fmt.Sprintf("models: no model of %T", v))
	}
	return Of[V]{m}
}

// ForMessage returns the model of v.
func (r *Registry) ForMessage(v proto.Message) (*Model, bool) {
	return r.ByMessage(v.ProtoReflect().Descriptor().FullName())
}

// ByMessage returns the model of a message by its full name, such as "ligato.linux.l3.Route".
func (r *Registry) ByMessage(name protoreflect.FullName) (*Model, bool) {
	m, ok := r.byMessage[name]
	return m, ok
}

// minElements is the minimum number of elements of a prefix: class, module, version and
// type. A prefix ends with a slash except for singletons: "config/vpp/v2/route/",
// "config/linux/l3/v2/route/".
const minElements = 4

// ByKey returns the model and the name of key: the rest after the prefix, empty for a
// singleton. The cost depends only on the length of the prefix.
func (r *Registry) ByKey(key string) (m *Model, name string, ok bool) {
	for at, n := 0, 1; n <= r.deepest+1; n++ {
		slash := strings.IndexByte(key[at:], '/')
		if slash < 0 {
			m, ok = r.byPrefix[key]
			return m, "", ok && m.Singleton()
		}
		at += slash + 1
		if n < minElements {
			continue
		}
		m, ok = r.byPrefix[key[:at]]
		if ok {
			return m, key[at:], at < len(key)
		}
	}
	return nil, "", false
}
