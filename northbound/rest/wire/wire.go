// Package wire defines the JSON that the agent answers under /scheduler/, /sources
// and /vpp/. The agent encodes and clients decode the same types with encoding/json.
//
// Field names are part of the API. Fields with omitempty are omitted if they are
// empty; clients ignore unknown fields. Golden files in the testdata of package rest
// contain every type.
package wire

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// LabelHeader is the header that names the label of the agent in each answer. In a request it is
// the label that the client expects; an agent with another label refuses the request with status
// 421 (Misdirected Request, RFC 9110, 15.5.20).
const LabelHeader = "Keyplane-Label"

// A Failure is the body of an answer with an error status.
type Failure struct {
	// The message for people. Its wording is no part of the API: programs compare the status.
	Error  string
	Failed []Invalid `json:",omitempty"` // of a change of the configuration: the values that failed
}

// A Message is a value with the name of its type. A nil Message is null in JSON.
type Message struct {
	ProtoMsgName string          // full: "ligato.linux.l3.Route"
	ProtoMsgData json.RawMessage // fields in lowerCamelCase
}

// MessageOf returns m, or nil for nil. A message that cannot be encoded becomes a text with
// the reason. The white space in ProtoMsgData varies between builds, as protojson does;
// encoding/json removes it.
func MessageOf(m proto.Message) *Message {
	if m == nil {
		return nil
	}
	out := &Message{ProtoMsgName: string(m.ProtoReflect().Descriptor().FullName())}
	var err error
	out.ProtoMsgData, err = protojson.MarshalOptions{AllowPartial: true}.Marshal(m)
	if err != nil { // invalid UTF-8; the other values are still answered
		out.ProtoMsgData, _ = json.Marshal(fmt.Sprintf("cannot be written as JSON: %v", err)) // a string can always be encoded
	}
	return out
}

// Origins of a value.
const (
	UnknownOrigin = 0
	FromNB        = 1 // declared by a source
	FromSB        = 2 // found in the southbound
)

// A DumpEntry is one value of a dump.
type DumpEntry struct {
	Key      string
	Value    *Message
	Origin   int
	Metadata json.RawMessage // metadata from Create; null: none
}

// A DumpIndex lists the dumps that exist. KeyPrefixes has the prefix of each
// descriptor's keys, empty if users cannot declare its values.
type DumpIndex struct {
	Descriptors []string
	KeyPrefixes []string
	// The words that the argument view accepts: SB, NB and cached.
	Views []string
}

// A BaseValueStatus is the state of a declared value and of its derived values.
type BaseValueStatus struct {
	Value         ValueStatus   `json:"value"`
	DerivedValues []ValueStatus `json:"derived_values,omitempty"`
}

// A ValueStatus is the state of one value.
type ValueStatus struct {
	Key string `json:"key"`
	// The name of a state in capitals: CONFIGURED. Error explains FAILED, RETRYING and
	// INVALID.
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	// The last operation on the value, such as CREATE; empty: none since the start.
	LastOperation string   `json:"last_operation,omitempty"`
	Details       []string `json:"details,omitempty"` // PENDING: missing dependencies; INVALID: paths of fields; otherwise warnings
}

// A Plan is the result of planning a change.
type Plan struct {
	// In the order of their execution. Both halves of a re-creation are listed.
	Operations []Operation
	Invalid    []Invalid // values that are not part of the plan
	// Unknown are the kinds with values of which nobody knows which exist: the operations of these values are
	// not in the plan.
	Unknown []Unknown `json:",omitempty"`
	// The first 1000; one more counts the others.
	Warnings []Warning `json:",omitempty"`
}

// A Warning concerns a field of a value that has no effect, a notation that was corrected, or a
// whole value without effect.
type Warning struct {
	Key  string
	Line int `json:",omitempty"` // of the body, from 1
	Text string
	// The source whose value takes effect instead of that in the body. Empty: the warning has
	// another reason.
	KeptBy string `json:",omitempty"`
}

// An Invalid is a value that the agent refuses, or an error that concerns no value.
type Invalid struct {
	Key    string `json:",omitempty"`
	Line   int    `json:",omitempty"` // of the body, from 1
	Error  string
	Fields []string `json:",omitempty"` // paths of the invalid fields
}

// An Explanation describes the state of a value and, if the value is not applied,
// the causes.
type Explanation struct {
	Key   string `json:",omitempty"`
	State string `json:",omitempty"`
	Text  string
	// The causes, each with causes of its own. A leaf has no further cause that the agent
	// knows.
	Because []Explanation `json:",omitempty"`
	// Of the value that was asked for: who declares it, the highest priority first. Text says it too.
	Declared []Declaration `json:",omitempty"`
}
