package graph

import "github.com/keyplane/keyplane/scheduler/internal/value"

// A Kind has the functions of one kind of value that the graph needs. They are pure.
type Kind interface {
	Equivalent(key string, old, new any) bool
	Recreate(key string, old, new, meta any) bool
	Knowledge() *Knowledge // nil: its values are always known, and reachable
	Evidence() value.Evidence
	Order(key string, data any) value.Order
}

// order returns the order of a version; a property has none.
func (v *version) order() value.Order {
	if v.Kind == nil {
		return value.BreakFirst
	}
	return v.Kind.Order(v.Key, v.Data)
}

// A Value is a desired or actual value of a key. It is immutable once it is given to a graph. A
// test limits it to 96 bytes, a size class in which Go allocates.
type Value struct {
	Key  string
	Data any
	Kind Kind // nil: a property, which exists while its base exists
	Deps []value.Dep
	value.Rare[Value]
	// Size is the memory of a declared value with its derived values, in bytes; 0: not counted.
	// The graph does not use it.
	Size int32
	// Doubt says that an actual value may have been changed or removed since it was read.
	// It is deleted before the desired value is created, even if both are equal.
	Doubt bool
}

// identical compares two values exactly.
func identical(a, b *Value) bool {
	if a == b {
		return true
	}
	if a.Key != b.Key || a.Kind != b.Kind || (a.Err() == nil) != (b.Err() == nil) || a.Doubt != b.Doubt {
		return false
	}
	return value.SameData(a.Data, b.Data)
}

// suffices reports that an actual value needs no operation to become v.
func suffices(key string, stands, v *Value) bool {
	if v.Err() != nil || stands.Kind != v.Kind || stands.Doubt {
		return false
	}
	return v.Kind == nil || v.Kind.Equivalent(key, stands.Data, v.Data)
}

// evidence returns the Evidence of a kind. A property has no kind.
func evidence(kind Kind) value.Evidence {
	if kind == nil {
		return value.FollowsBase
	}
	return kind.Evidence()
}
