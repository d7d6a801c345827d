package wire

import "time"

// A Record is one transaction: what was to be done, and what came of it.
type Record struct {
	PreRecord      bool `json:",omitempty"` // it is not finished; no record that is served is one
	WithSimulation bool `json:",omitempty"`
	Start, Stop    time.Time
	SeqNum         uint64
	TxnType        string      // SBNotification, NBTransaction or RetryFailedOps
	ResyncType     string      `json:",omitempty"` // FullResync, UpstreamResync or DownstreamResync
	Description    string      `json:",omitempty"`
	RetryForTxn    uint64      `json:",omitempty"`
	RetryAttempt   int         `json:",omitempty"`
	Values         []KeyValue  `json:",omitempty"` // sorted by key
	Planned        []Operation `json:",omitempty"`
	Executed       []Operation `json:",omitempty"`
	NotReadBack    []string    `json:",omitempty"` // why some of what stands is not known
}

// A KeyValue is an argument of a transaction.
type KeyValue struct {
	Key    string
	Value  *Message // null: nothing should stand
	Origin int
}

// An Operation is one step of a transaction.
type Operation struct {
	Operation  string // VALIDATE, CREATE, UPDATE or DELETE
	Key        string
	NewState   string   `json:",omitempty"`
	NewValue   *Message `json:",omitempty"`
	NewErrMsg  string   `json:",omitempty"`
	PrevState  string   `json:",omitempty"`
	PrevValue  *Message `json:",omitempty"`
	PrevErrMsg string   `json:",omitempty"`
	NOOP       bool     `json:",omitempty"`
	IsDerived  bool     `json:",omitempty"`
	IsProperty bool     `json:",omitempty"`
	IsRevert   bool     `json:",omitempty"`
	IsRetry    bool     `json:",omitempty"`
	IsRecreate bool     `json:",omitempty"`
}
