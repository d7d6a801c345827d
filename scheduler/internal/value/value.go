// Package value has those parts of values that need no graph: dependencies and the keys that meet
// them, claims, the form in which a value was declared, its errors, and the verbs and the order of
// its operations.
//
//	d := value.Dep{Label: "interface", Key: "config/.../eth0"}
//	met := d.MetBy(key)
//
// The package keeps no state, and its values are immutable.
package value

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
)

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
	Remedy   string // what a person may do while nothing meets it
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
	for _, prefix := range d.Any.AllPrefixes() {
		if strings.HasPrefix(key, prefix) {
			return d.Any.Match == nil || d.Any.Match(key)
		}
	}
	return false
}

// Same reports whether two dependencies are met by the same keys. Match functions cannot be compared, so
// with one of them it may report false for such dependencies.
func (d *Dep) Same(other *Dep) bool {
	a, b := d.Any, other.Any
	switch {
	case d == other:
		return true
	case d.Key != other.Key || (a == nil) != (b == nil):
		return false
	}
	return a == nil || a.Match == nil && b.Match == nil && slices.Equal(a.Keys, b.Keys) && slices.Equal(a.Prefixes, b.Prefixes)
}

// AllPrefixes are the prefixes of the keys that a is matched with.
func (a *AnyOf) AllPrefixes() []string {
	if len(a.Prefixes) == 0 && a.Match != nil {
		return []string{""}
	}
	return a.Prefixes
}

// Folders are the folders of all keys that can meet d, each up to its slash; the root is empty. One
// can be there several times.
func (d *Dep) Folders() []string {
	if d.Any == nil {
		return nil
	}
	out := slices.Concat(d.Any.Keys, d.Any.AllPrefixes())
	for i, beginning := range out {
		out[i] = beginning[:strings.LastIndexByte(beginning, '/')+1]
	}
	return out
}

// Labels are the labels of dependencies.
func Labels(deps []Dep) (out []string) {
	for i := range deps {
		out = append(out, deps[i].Label)
	}
	return out
}

// Declared is a value in the form in which it was declared. The graph only compares it.
type Declared struct {
	Data     any
	Warnings []string // about fields that are in Declared.Data but not in Value.Data
}

// Same compares two declarations exactly. Either may be nil.
func (d *Declared) Same(other *Declared) bool {
	if d == nil || other == nil {
		return d == other
	}
	return SameData(d.Data, other.Data) && slices.Equal(d.Warnings, other.Warnings)
}

// SameData compares messages by content, and other data by ==.
func SameData(a, b any) bool {
	am, ok := a.(proto.Message)
	if !ok {
		return a == b
	}
	bm, ok := b.(proto.Message)
	return ok && proto.Equal(am, bm)
}
