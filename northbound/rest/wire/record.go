package wire

import "time"

// A Record is one transaction: planned operations and their results.
type Record struct {
	PreRecord bool `json:",omitempty"` // unfinished; never served, kept for compatibility
	// WithSimulation means that Planned was computed before the first operation ran.
	WithSimulation bool `json:",omitempty"`
	Start, Stop    time.Time
	// Numbers begin at 0 with each start of the agent, so they identify nothing across
	// restarts.
	SeqNum     uint64
	TxnType    string // SBNotification, NBTransaction or RetryFailedOps
	ResyncType string `json:",omitempty"` // FullResync, UpstreamResync or DownstreamResync
	// Revert means all or nothing: if an operation has failed, the transaction was undone.
	Revert      bool   `json:",omitempty"`
	Description string `json:",omitempty"`
	// Of a retry: the transaction in which the values failed, and the number of the attempt,
	// from 1.
	RetryForTxn  uint64     `json:",omitempty"`
	RetryAttempt int        `json:",omitempty"`
	Values       []KeyValue `json:",omitempty"` // sorted by key
	// Executed differs from Planned where an operation failed: its dependents then wait.
	Planned     []Operation `json:",omitempty"`
	Executed    []Operation `json:",omitempty"`
	NotReadBack []string    `json:",omitempty"` // errors of values that could not be read back
	// Earlier means that the transaction was one of an earlier run of the agent. Then Values and Planned are empty, the
	// operations have no values, and Cut is the number of further ones that are not known any more.
	Earlier bool `json:",omitempty"`
	Cut     int  `json:",omitempty"`
}

// A KeyValue is a change that the transaction requested.
type KeyValue struct {
	Key   string
	Value *Message // null: removal
	// FromNB or FromSB.
	Origin int
}

// An Operation is one step of a transaction. Prev fields describe the state before
// it.
type Operation struct {
	// Operation is VALIDATE, CREATE, UPDATE or DELETE.
	Operation string
	Key       string
	// The new and previous states, values and errors are those that the value showed after and
	// before the operation. A state is empty if the value did not exist.
	NewState   string   `json:",omitempty"`
	NewValue   *Message `json:",omitempty"`
	NewErrMsg  string   `json:",omitempty"`
	PrevState  string   `json:",omitempty"`
	PrevValue  *Message `json:",omitempty"`
	PrevErrMsg string   `json:",omitempty"`
	// Waits names the unmet dependencies of a value that is PENDING after the operation.
	Waits []string `json:",omitempty"`
	// NOOP means that no verb was called: only the state has changed.
	NOOP bool `json:",omitempty"`
	// Order numbers the executed operations with a verb across all transactions, from 1 with each
	// start of the agent. It tells the order of operations of transactions that overlap. An operation
	// that was abandoned and returned later is in two transactions with the same number.
	Order uint64 `json:",omitempty"`
	// Base is, in a plan, the key of the declared value that a derived value belongs to.
	Base string `json:",omitempty"`
	// IsDerived means that the value is derived and has a descriptor, IsProperty that it has none.
	IsDerived  bool `json:",omitempty"`
	IsProperty bool `json:",omitempty"`
	// IsRevert marks the undoing of a failed transaction, IsRetry the consequences of a retry, and
	// IsRecreate the two parts of a change that cannot be made in place.
	IsRevert   bool `json:",omitempty"`
	IsRetry    bool `json:",omitempty"`
	IsRecreate bool `json:",omitempty"`
}
