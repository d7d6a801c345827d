package graph

import (
	"unsafe"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

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

// A Value is a desired or actual value of a key. It is immutable once it is given to a graph. A
// test limits it to 112 bytes, a size class in which Go allocates.
type Value struct {
	Key     string
	Data    any
	Kind    Kind // nil: a property, which exists while its base exists
	Deps    []value.Dep
	Derived []*Value
	rare    *rare // nil: none of it, as in most values
	// Size is the memory of a declared value with its derived values, in bytes; 0: not counted.
	// The graph does not use it.
	Size int32
	// Doubt says that an actual value may have been changed or removed since it was read.
	// It is deleted before the desired value is created, even if both are equal.
	Doubt bool
}

// A rare has what most values do not have. Copies of a value share it.
type rare struct {
	err      error
	claims   *[]value.Claim
	declared *value.Declared
}

// Err is why the value can never be applied; nil: it can.
func (v *Value) Err() error {
	if v.rare == nil {
		return nil
	}
	return v.rare.err
}

// Declared is the value as it was declared, if that differs from Data; nil: it does not.
func (v *Value) Declared() *value.Declared {
	if v.rare == nil {
		return nil
	}
	return v.rare.declared
}

// claimSet returns the claims; nil for most values, which have none. Copies of a value have the same set.
func (v *Value) claimSet() *[]value.Claim {
	if v.rare == nil {
		return nil
	}
	return v.rare.claims
}

// claims returns the claims.
func (v *Value) claims() []value.Claim {
	if c := v.claimSet(); c != nil {
		return *c
	}
	return nil
}

// SetErr sets the reason why the value can never be applied. It and the other setters are for whoever
// makes the value.
func (v *Value) SetErr(err error) { v.setRare(rare{err, v.claimSet(), v.Declared()}) }

// SetClaims sets the claims; nil: none.
func (v *Value) SetClaims(claims *[]value.Claim) { v.setRare(rare{v.Err(), claims, v.Declared()}) }

// SetDeclared sets the declared form; nil: it is that of Data.
func (v *Value) SetDeclared(d *value.Declared) { v.setRare(rare{v.Err(), v.claimSet(), d}) }

func (v *Value) setRare(r rare) {
	v.rare = nil
	if r.err != nil || r.claims != nil || r.declared != nil {
		v.rare = &r
	}
}

// Bytes is the memory of the value itself, without what it refers to.
func (v *Value) Bytes() int {
	n := unsafe.Sizeof(*v)
	if v.rare != nil {
		n += unsafe.Sizeof(*v.rare)
	}
	return int(n)
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
