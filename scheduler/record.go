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
	// Seq is the number of the transaction, from 0 with each Scheduler. Transactions that
	// overlap may end in another order than that of their numbers.
	Seq  uint64
	Type TxnType
	// Refresh and Replace are those of the Txn. A connection that became ready, and a call of
	// Scheduler.Refresh, have a record with Refresh too.
	Refresh, Replace bool
	Description      string
	// RetryOf is the transaction in which the values of a retry failed, and Attempt counts the
	// retries since, from 1.
	RetryOf uint64
	Attempt int
	// Start is the time at which the transaction began, not the time of Commit.
	Start, Stop time.Time
	// Values are the declared, observed or retried values, in the order of the transaction.
	Values []Change
	// Simulated means that Txn.Simulate or Options.Simulate asked for Planned. The record of a
	// retry has Planned in any case.
	Simulated bool
	// Planned are the operations that were expected, if each of them succeeds. Executed are the
	// operations in the order in which they began, with their results.
	Planned, Executed []Operation
	// Revert means that a failure undoes the transaction.
	Revert bool
	// RefreshErrors are those of descriptors that could not be read back. Their known actual
	// values stay.
	RefreshErrors []error
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
