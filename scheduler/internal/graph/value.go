package graph

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
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

// A Value is a desired or actual value of a key. It is immutable.
type Value struct {
	Key     string
	Data    any
	Kind    Kind // nil: a property, which exists while its base exists
	Deps    []Dep
	Derived []*Value
	Err     error    // why the value can never be applied; nil: it can
	Claims  *[]Claim // nil: none
	// Doubt says that an actual value may have been changed or removed since it was read.
	// It is deleted before the desired value is created, even if both are equal.
	Doubt bool
	// Size is the memory of a declared value with its derived values, in bytes; 0: not counted.
	// The graph does not use it.
	Size int
	// Declared is the value as it was declared, if that differs from Data.
	Declared *Declared
}

// Declared is a value in the form in which it was declared. The graph only compares it.
type Declared struct {
	Data     any
	Warnings []string // about fields that are in Declared.Data but not in Value.Data
}

// A Dep is a dependency of a value. It is met by Key or, without one, by Any. A Dep with
// only a Label is never met.
type Dep struct {
	Label string
	Key   string
	Any   *AnyOf // rare, so most values do not pay for its fields
}

// AnyOf matches any of several keys: Keys, and those that have one of Prefixes (none: any
// prefix, if Match is set) and that Match accepts (nil: all).
type AnyOf struct {
	Keys     []string
	Prefixes []string
	Match    func(key string) bool
}

// MetBy reports that key meets d.
func (d *Dep) MetBy(key string) bool {
	switch {
	case d.Key != "":
		return key == d.Key
	case d.Any == nil:
		return false
	case slices.Contains(d.Any.Keys, key):
		return true
	}
	for _, prefix := range d.Any.prefixes() {
		if strings.HasPrefix(key, prefix) {
			return d.Any.Match == nil || d.Any.Match(key)
		}
	}
	return false
}

// prefixes are the prefixes of the keys that a is matched with.
func (a *AnyOf) prefixes() []string {
	if len(a.Prefixes) == 0 && a.Match != nil {
		return []string{""}
	}
	return a.Prefixes
}

// beginnings are the beginnings of all keys that can meet d.
func (d *Dep) beginnings() []string {
	if d.Any == nil {
		return nil
	}
	return slices.Concat(d.Any.Keys, d.Any.prefixes())
}

// A Claim names a resource that only one value can have. The value that holds the resource
// keeps it while it is desired. A free resource goes to the newcomer with the lowest key.
// A value that loses one of its claims cannot be applied and takes no other resource.
type Claim struct {
	Of    string // the resource; competing claims have the same one. No key is equal to it
	Label string // shown to people while another value still uses the resource
	// Yields: any number of yielding claims share the resource, unless a claim exists that
	// does not yield.
	Yields   bool
	Conflict func(by string) error // the error of a value that loses to the key by
}

// claims returns nil for most values, which have none.
func (v *Value) claims() []Claim {
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
	return identicalData(a.Data, b.Data)
}

// identicalData compares messages by content, and other data by ==.
func identicalData(a, b any) bool {
	am, ok := a.(proto.Message)
	if !ok {
		return a == b
	}
	bm, ok := b.(proto.Message)
	return ok && proto.Equal(am, bm)
}

// identicalDeclared compares two declarations exactly.
func identicalDeclared(a, b *Declared) bool {
	if a == nil || b == nil {
		return a == b
	}
	return identicalData(a.Data, b.Data) && slices.Equal(a.Warnings, b.Warnings)
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
