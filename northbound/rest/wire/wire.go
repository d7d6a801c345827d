// Package wire holds the shapes of what the agent answers under /scheduler/, for
// both ends: encoding/json writes and reads each of them.
//
// Their names are part of the interface. What a field does not say is left out
// where its tag has omitempty; clients ignore what they do not know. Golden files in
// the testdata of package rest hold every shape.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// A Failure is the body of an answer that is none.
type Failure struct {
	Error string
}

// A Message is a value with the name of its type; a nil one is null.
type Message struct {
	ProtoMsgName string          // full: "ligato.linux.l3.Route"
	ProtoMsgData json.RawMessage // fields in lowerCamelCase
}

// MessageOf returns m as it is written, without needless space; nil for nil.
func MessageOf(m proto.Message) *Message {
	if m == nil {
		return nil
	}
	out := &Message{ProtoMsgName: string(m.ProtoReflect().Descriptor().FullName())}
	// The order is that of the fields; only the space between them is random.
	spaced, err := protojson.MarshalOptions{AllowPartial: true}.Marshal(m)
	var data bytes.Buffer
	if err == nil {
		err = json.Compact(&data, spaced)
	}
	if err != nil { // text that is no UTF-8: the rest of an answer does without it
		data.Reset()
		_ = json.NewEncoder(&data).Encode(fmt.Sprintf("cannot be written as JSON: %v", err)) // a string always can
	}
	out.ProtoMsgData = bytes.TrimSpace(data.Bytes())
	return out
}

// Where a value comes from.
const (
	UnknownOrigin = 0
	FromNB        = 1 // declared
	FromSB        = 2 // noticed, and not ours
)

// A DumpEntry is one value of a dump.
type DumpEntry struct {
	Key      string
	Value    *Message
	Origin   int
	Metadata json.RawMessage // what Create learned; null: nothing
}

// A DumpIndex says what can be dumped: for each descriptor the prefix of the keys
// that are declared for it, empty where nobody declares its values.
type DumpIndex struct {
	Descriptors []string
	KeyPrefixes []string
	Views       []string
}

// A BaseValueStatus is the state of a declared value, and of what is derived from it.
type BaseValueStatus struct {
	Value         ValueStatus   `json:"value"`
	DerivedValues []ValueStatus `json:"derived_values,omitempty"`
}

// A ValueStatus is the state of one value.
type ValueStatus struct {
	Key           string   `json:"key"`
	State         string   `json:"state"`
	Error         string   `json:"error,omitempty"`
	LastOperation string   `json:"last_operation,omitempty"`
	Details       []string `json:"details,omitempty"` // PENDING: what it waits for; INVALID: paths of the fields; else warnings
}

// A Plan is what would be done.
type Plan struct {
	Operations []Operation
	Invalid    []Invalid // what is not part of the plan, as nobody could do it
	Warnings   []Warning `json:",omitempty"` // what was ignored or read leniently
}

// A Warning is about a part of a value that has no effect, or has another spelling.
type Warning struct {
	Key  string
	Line int `json:",omitempty"` // of the body, from 1
	Text string
}

// An Invalid is a value that would be refused, or a fault that belongs to no value.
type Invalid struct {
	Key    string `json:",omitempty"`
	Line   int    `json:",omitempty"` // of the body, from 1
	Error  string
	Fields []string `json:",omitempty"` // paths of those that are wrong
}

// An Explanation says how a value is, and if it is not applied, why.
type Explanation struct {
	Key     string `json:",omitempty"`
	State   string `json:",omitempty"`
	Text    string
	Because []Explanation `json:",omitempty"`
}
