package scheduler

import (
	"slices"
	"time"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/scheduler/internal/history"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
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
	// retry of at most 1,000 values has Planned in any case.
	Simulated bool
	// Planned are the operations that were expected, if each of them succeeds. Executed are the
	// operations in the order in which they began, with their results.
	Planned, Executed Operations
	// Unknown are, in the record of Scheduler.Plan, the kinds with values that were unknown.
	Unknown []UnknownKind
	// Revert means that a failure undoes the transaction.
	Revert bool
	// RefreshErrors are those of descriptors that could not be read back. Their known actual
	// values stay.
	RefreshErrors []error
}

// Err returns a *TxnError if operations of the transaction failed.
func (r *Record) Err() error {
	var failed []KeyError
	for _, op := range r.Executed.All() {
		if op.NewErr != nil && !op.Revert {
			failed = append(failed, KeyError{Key: op.Key, Verb: op.Verb, Err: op.NewErr})
		}
	}
	if failed == nil {
		return nil
	}
	return &TxnError{failed}
}

// keys yields the keys of Values.
func (r *Record) keys(yield func(string) bool) {
	for i := range r.Values {
		if !yield(r.Values[i].Key) {
			return
		}
	}
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

// mostKeyText is the maximum length of a key in a kept record, in bytes. Longer ones are cut.
const mostKeyText = 4 << 10

// History returns the kept records, oldest first. Their errors have the text only. A text
// longer than 1 KiB or a key longer than 4 KiB is cut and ends with "… (N bytes)".
func (s *Scheduler) History() []*Record {
	kept, _ := s.history.Since(0)
	out := make([]*Record, len(kept))
	for i, k := range kept {
		out[i] = k.whole()
	}
	return out
}

// HistorySince returns the kept records without the first n of all transactions that have ended, oldest first. all is the next
// n. A record of many values may lack them: to make all of them for a reader takes memory.
func (s *Scheduler) HistorySince(n uint64) (records []*Record, all uint64) {
	kept, all := s.history.Since(n)
	for _, k := range kept {
		records = append(records, k.Record)
	}
	return records, all
}

// kept returns a copy of the record for the history and the transaction log. Errors are
// replaced by their texts, because an error may hold any memory. Texts are cut; values are
// complete. The record that Commit returns does not change.
func (r *Record) kept() *Record {
	k := *r
	k.Description = printable.Cut(k.Description, history.MaxText)
	if slices.ContainsFunc(k.Values, func(c Change) bool { return c.Err != nil || len(c.Key) > mostKeyText }) {
		k.Values = slices.Clone(k.Values)
		for i := range k.Values {
			c := &k.Values[i]
			c.Refused = kind.RefusedIn(c.Err)
			c.Key, c.Err = printable.Cut(c.Key, mostKeyText), history.Text(c.Err)
		}
	}
	k.Planned, k.Executed = k.Planned.kept(), k.Executed.kept()
	k.RefreshErrors = slices.Clone(k.RefreshErrors)
	for i, err := range k.RefreshErrors {
		k.RefreshErrors[i] = history.Text(err)
	}
	return &k
}
