// Package browse has the JSON of lists that are read in parts, and of one value with its relations.
// People browse with them; programs that want everything use /scheduler/dump.
package browse

import (
	"time"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A ValuePage is a part of a list of values.
type ValuePage struct {
	// Total is the number of values that fit the search and the states, and Offset the place of
	// the first one of Values among them. They are sorted by key, or by state and then by key.
	Total, Offset int
	// States is the number of values that fit the search, by state. The argument state does not
	// matter for it.
	States map[string]int
	Values []ListedValue
}

// A ListedValue is a value with its state, but without its content.
type ListedValue struct {
	Key, State string
	// Since is the time from which the value has State.
	Since time.Time
	// Error and Details explain the state as in wire.ValueStatus. Long texts are cut.
	Error   string   `json:",omitempty"`
	Details []string `json:",omitempty"`
	// LastOperation is empty if there was none since the start.
	LastOperation string `json:",omitempty"`
	Descriptor    string `json:",omitempty"` // empty: none has the key
	Base          string `json:",omitempty"` // of a derived value: the key of its base
	// Roots are the last causes in the explanation of the value, at most three; empty: the
	// cause is the value itself.
	Roots []Root `json:",omitempty"`
}

// A Root is a cause that has no further cause which the agent knows.
type Root struct {
	Key  string `json:",omitempty"` // empty: it is no value
	Text string
}

// A ValueDetails is a value with its content and its relations.
type ValueDetails struct {
	Value ListedValue
	// Desired is as declared, Actual as known from the system; null: there is none. Secrets
	// are redacted.
	Desired *wire.Message `json:",omitempty"`
	Actual  *wire.Message `json:",omitempty"`
	// Needs are the dependencies. Derived are the values that are made from this one.
	// Dependents are those that depend on it, or on a value that is derived from it.
	Needs      []Need
	Derived    []Neighbour
	Dependents []Neighbour
	// MoreDerived and MoreDependents count those that are left out: at most 200 are listed.
	MoreDerived    int `json:",omitempty"`
	MoreDependents int `json:",omitempty"`
}

// A Need is one dependency of a value.
type Need struct {
	Label    string
	Expected string // a key; of several alternatives: "prefix*" joined by " | "
	// Met are existing values that satisfy it, at most 20; More counts the others.
	Met  []Neighbour
	More int `json:",omitempty"`
}

// A Neighbour is a value that is related to another one.
type Neighbour struct {
	Key, State string
	// Label is that of its dependency, and Via the derived value that it depends on. Both are
	// empty unless it is a dependent.
	Label string `json:",omitempty"`
	Via   string `json:",omitempty"`
}

// A TransactionPage is a part of the history, the newest transaction first.
type TransactionPage struct {
	Total, Offset int
	Transactions  []TransactionSummary
}

// A TransactionSummary is a transaction without its values and operations.
type TransactionSummary struct {
	SeqNum       uint64
	Start, Stop  time.Time
	TxnType      string // as in Record
	ResyncType   string `json:",omitempty"`
	Description  string `json:",omitempty"`
	RetryForTxn  uint64 `json:",omitempty"`
	RetryAttempt int    `json:",omitempty"`
	// Numbers of requested changes, of planned and executed operations, of those that have
	// failed, and of descriptors that could not be read back.
	Values, Planned, Executed, Failed, NotReadBack int
	// First is the key of the first executed operation; empty: there is none.
	First string `json:",omitempty"`
}
