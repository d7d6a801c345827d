package graph

import "github.com/keyplane/keyplane/scheduler/internal/value"

// A Kind has the functions of one kind of value that the graph needs. They are pure.
type Kind interface {
	Equivalent(key string, old, new any) bool
	Recreate(key string, old, new, meta any) bool
	Connection() *Connection // nil: its values are always reachable
	Evidence() Evidence
	Order(key string, data any) Order
}

// An Order says when a value is deleted and created, compared to other values that leave and
// come at the same time.
type Order uint8

const (
	// BreakFirst: it is deleted before anything is created.
	BreakFirst Order = iota
	// MakeFirst: it can exist beside the value that replaces it. When it is not desired any
	// more, it is deleted after all else that is possible: make before break.
	MakeFirst
	// CreateLast: it may be the same item of the system as a value with MakeFirst. So it is
	// deleted as with BreakFirst, and created after all values with MakeFirst were deleted.
	CreateLast
)

// order returns the order of a version; a property has none.
func (v *version) order() Order {
	if v.Kind == nil {
		return BreakFirst
	}
	return v.Kind.Order(v.Key, v.Data)
}

// A Value is a desired or actual value of a key. It is immutable.
type Value struct {
	Key     string
	Data    any
	Kind    Kind // nil: a property, which exists while its base exists
	Deps    []value.Dep
	Derived []*Value
	Err     error          // why the value can never be applied; nil: it can
	Claims  *[]value.Claim // nil: none
	// Doubt says that an actual value may have been changed or removed since it was read.
	// It is deleted before the desired value is created, even if both are equal.
	Doubt bool
	// Size is the memory of a declared value with its derived values, in bytes; 0: not counted.
	// The graph does not use it.
	Size int
	// Declared is the value as it was declared, if that differs from Data.
	Declared *value.Declared
}

// claims returns nil for most values, which have none.
func (v *Value) claims() []value.Claim {
	if v.Claims == nil {
		return nil
	}
	return *v.Claims
}

// identical compares two values exactly.
func identical(a, b *Value) bool {
	if a == b {
		return true
	}
	if a.Key != b.Key || a.Kind != b.Kind || (a.Err == nil) != (b.Err == nil) || a.Doubt != b.Doubt {
		return false
	}
	return value.SameData(a.Data, b.Data)
}

// suffices reports that an actual value needs no operation to become v.
func suffices(key string, stands, v *Value) bool {
	if v.Err != nil || stands.Kind != v.Kind || stands.Doubt {
		return false
	}
	return v.Kind == nil || v.Kind.Equivalent(key, stands.Data, v.Data)
}

// Evidence says how a read-back decides whether a derived value exists.
type Evidence uint8

const (
	// ShownByBase: it exists if Derived of the found base value has it.
	ShownByBase Evidence = iota
	// FollowsBase: it exists while its base exists, because it has no verbs.
	FollowsBase
	// ReadAlone: it is read back by itself; its base says nothing about it.
	ReadAlone
)

// evidence returns the Evidence of a kind. A property has no kind.
func evidence(kind Kind) Evidence {
	if kind == nil {
		return FollowsBase
	}
	return kind.Evidence()
}
