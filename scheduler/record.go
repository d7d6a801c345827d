package scheduler

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// State is where a value stands between what is wanted and what is.
type State = kvscheduler.ValueState

// Verb is what an operation does to its key.
type Verb = kvscheduler.TxnOperation

// Message is what stands under a key.
type Message = proto.Message

const (
	nonexistent        = kvscheduler.ValueState_NONEXISTENT
	removed            = kvscheduler.ValueState_REMOVED
	invalidState       = kvscheduler.ValueState_INVALID
	unimplementedState = kvscheduler.ValueState_UNIMPLEMENTED
	validate           = kvscheduler.TxnOperation_VALIDATE
)

// TxnType is what made a transaction happen.
type TxnType uint8

const (
	Notification TxnType = iota // the southbound changed by itself
	Northbound                  // Commit
	RetryFailed                 // the time has come to try again
)

func (t TxnType) String() string {
	return [...]string{"SB Notification", "NB Transaction", "Retry Transaction"}[t]
}

// A Record is what a transaction was to do and did. It is immutable.
type Record struct {
	Seq           uint64
	Type          TxnType
	Refresh       bool
	Replace       bool
	Description   string
	RetryOf       uint64 // the transaction in which the values failed, of a retry
	Attempt       int    // of a retry, from 1
	Start, Stop   time.Time
	Values        []Change
	Simulated     bool // Planned says what was to be done if all went well
	Planned       []Operation
	Executed      []Operation
	Revert        bool    // what was done is undone if anything failed
	RefreshErrors []error // why some of what stands could not be read back
}

// Err returns a *TxnError if operations of the transaction failed.
func (r *Record) Err() error {
	var failed []KeyError
	for i := range r.Executed {
		op := &r.Executed[i]
		if op.NewErr != nil && !op.Revert {
			failed = append(failed, KeyError{op.Key, op.Verb, op.NewErr})
		}
	}
	if failed == nil {
		return nil
	}
	return &TxnError{failed}
}

// Resync is the name of the transaction's kind of resync; empty: it is none.
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
