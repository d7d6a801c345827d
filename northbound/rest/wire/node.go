package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// A Node is a value of the graph during one period.
type Node struct {
	Since time.Time
	Until time.Time // zero: still current
	Key   string
	// The key without the prefix of its descriptor.
	Label string
	Value *Message
	Flags Flags
	// Fields of the metadata by name, each element as text. Zero fields are left out; null: no
	// field is left.
	MetadataFields map[string][]string
	Targets        []Target
	// Always false, kept for compatibility.
	TargetUpdateOnly bool
}

// A Target is a relation of a value: to a dependency, or to a value derived from it.
type Target struct {
	Relation     string // depends-on or derives
	Label        string
	ExpectedKey  string   // of several alternatives: "prefix*" joined by " | "
	MatchingKeys []string // keys that exist and satisfy the relation
}

// Names of flags, part of the API.
const (
	LastUpdate  = "last-update"
	Error       = "error"
	ValueState  = "value-state"
	Unavailable = "unavailable"
	Descriptor  = "descriptor"
	Derived     = "derived"
)

// FlagNames returns the names of all flags, in the order of Node.Flags.
func FlagNames() []string {
	return []string{LastUpdate, Error, ValueState, Unavailable, Descriptor, Derived}
}

// A Flag is one property of a node.
type Flag struct{ Name, Value string }

// Flags are the properties of a node. In JSON they are an object with the flags in
// this order.
type Flags []Flag

// Get returns the value of a flag, and whether the node has it.
func (fs Flags) Get(name string) (string, bool) {
	for _, f := range fs {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

// MarshalJSON implements json.Marshaler. encoding/json would sort a map by name.
func (fs Flags) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range fs {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (fs *Flags) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(errors.New("flags: expected an object"), err)
	}
	*fs = nil
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value string
		if err := d.Decode(&value); err != nil {
			return err
		}
		*fs = append(*fs, Flag{name.(string), value}) // names of fields are always strings
	}
	return nil
}

// FlagStats counts the values of a flag in all revisions.
type FlagStats struct {
	// Revisions that have the flag. It is the sum of PerValueCount.
	TotalCount    int
	PerValueCount map[string]int
}
