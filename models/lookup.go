package models

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
)

// All returns every model, sorted by name.
func All() []*Model { return slices.Clone(models().all) }

// ByName returns the model with the given name, such as "linux.l3.route".
func ByName(name string) (*Model, bool) {
	m, ok := models().byName[name]
	return m, ok
}

// For returns the model of message type V. It panics if there is none.
func For[V proto.Message]() Of[V] {
	var v V
	m, ok := ForMessage(v)
	if !ok {
		panic(fmt.Sprintf("models: no model of %T", v))
	}
	return Of[V]{m}
}

// ForMessage returns the model of v.
func ForMessage(v proto.Message) (*Model, bool) {
	m, ok := models().byMessage[v.ProtoReflect().Descriptor().FullName()]
	return m, ok
}

// Prefixes have four to six elements, and end with a slash except for singletons:
// "config/vpp/v2/route/", "config/linux/l3/v2/route/".
const (
	minElements = 4
	maxElements = 6
)

// ByKey returns the model and the name of key: the rest after the prefix, empty for a
// singleton. The cost depends only on the length of the prefix.
func ByKey(key string) (m *Model, name string, ok bool) {
	byPrefix := models().byPrefix
	for at, n := 0, 1; n <= maxElements; n++ {
		slash := strings.IndexByte(key[at:], '/')
		if slash < 0 {
			m, ok = byPrefix[key]
			return m, "", ok && m.Singleton()
		}
		at += slash + 1
		if n < minElements {
			continue
		}
		m, ok = byPrefix[key[:at]]
		if ok {
			return m, key[at:], at < len(key)
		}
	}
	return nil, "", false
}
