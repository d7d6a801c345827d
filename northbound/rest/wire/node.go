package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// A Node is one value of the graph between two changes of it.
type Node struct {
	Since            time.Time
	Until            time.Time // zero: it still is so
	Key              string
	Label            string
	Value            *Message
	Flags            Flags
	MetadataFields   map[string][]string
	Targets          []Target
	TargetUpdateOnly bool
}

// A Target is what a value depends on, or what is derived from it.
type Target struct {
	Relation     string // depends-on or derives
	Label        string
	ExpectedKey  string   // any of many: "prefix*" joined by " | "
	MatchingKeys []string // those that stand
}

// Names of flags.
const (
	LastUpdate  = "last-update"
	Error       = "error"
	ValueState  = "value-state"
	Unavailable = "unavailable"
	Descriptor  = "descriptor"
	Derived     = "derived"
)

// FlagNames are the names of all flags, in the order in which a node has them.
func FlagNames() []string {
	return []string{LastUpdate, Error, ValueState, Unavailable, Descriptor, Derived}
}

// A Flag is something that is known of a node.
type Flag struct{ Name, Value string }

// Flags are those of a node. As JSON they are one object, in their order.
type Flags []Flag

// Get returns the value of a flag, and whether it is there.
func (fs Flags) Get(name string) (string, bool) {
	for _, f := range fs {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

// MarshalJSON implements json.Marshaler.
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
		*fs = append(*fs, Flag{name.(string), value}) // what names a field is text
	}
	return nil
}

// FlagStats counts a flag in the revisions of the graph.
type FlagStats struct {
	TotalCount    int
	PerValueCount map[string]int
}
