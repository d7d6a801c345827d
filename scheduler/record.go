package scheduler

import (
	"time"
)

// A TxnType is the cause of a transaction.
type TxnType uint8

const (
	Notification TxnType = iota // a change in the system
	Northbound                  // Commit or Submit
	RetryFailed                 // a due retry
)

func (t TxnType) String() string {
	return [...]string{"SB Notification", "NB Transaction", "Retry Transaction"}[t]
}

// A Record describes a transaction and its outcome. It is immutable.
type Record struct {
	Seq           uint64
	Type          TxnType
	Refresh       bool
	Replace       bool
	Description   string
	RetryOf       uint64 // of a retry: the transaction in which the values failed
	Attempt       int    // of a retry, from 1
	Start, Stop   time.Time
	Values        []Change
	Simulated     bool // planned because Txn.Simulate or Options.Simulate asked for it
	Planned       []Operation
	Executed      []Operation
	Revert        bool    // a failure undoes the transaction
	RefreshErrors []error // of descriptors that could not be read back
}

// Err returns a *TxnError if operations of the transaction failed.
func (r *Record) Err() error {
	var failed []KeyError
	for i := range r.Executed {
		op := &r.Executed[i]
		if op.NewErr != nil && !op.Revert {
			failed = append(failed, KeyError{Key: op.Key, Verb: op.Verb, Err: op.NewErr})
		}
	}
	if failed == nil {
		return nil
	}
	return &TxnError{failed}
}

// Resync returns the kind of resync; empty: the transaction is none.
func (r *Record) Resync() string {
	switch {
	case r.Refresh && r.Replace:
		return "FullResync"
	case r.Replace:
		return "UpstreamResync"
	case r.Refresh:
		return "DownstreamResync"
	}
	return ""
}
