package scheduler

import (
	"fmt"
	"strings"
	"time"
)

// A Txn is a change of what is wanted, done as one.
type Txn struct {
	Description string
	Changes     []Change // of one key the last counts; not changed any more once committed
	// Refresh first reads back what really stands, and tries again what failed
	// unless it was Terminal.
	Refresh bool
	// Verbose logs each value that is read back.
	Verbose bool
	// Replace says that Changes are all that is wanted. From then on whatever
	// else of ours stands is removed.
	Replace bool
	// Simulate plans the transaction before it is executed: see Options.Simulate.
	Simulate bool
	// Revert undoes all of the transaction when anything in it is invalid or
	// fails; then nothing of it is retried. Commit returns why it failed; what
	// failed while it was undone is in the record, among the operations that revert.
	Revert bool
	// Retry says how values that Changes name are tried again if they fail in this transaction. It
	// defaults to Options.Retry. Other values keep the retries that they have, and get those of
	// Options.Retry if they have none.
	Retry RetryPolicy
}

// A Change is what a transaction says of one key. Want, Unwant and Reject make one.
// A transaction with a Change that has an empty or another Scheduler's Value, or another
// Key than its Value, is refused as a whole: see ErrNoValue, ErrOtherScheduler, ErrWrongKey.
type Change struct {
	Key   string
	Value *Value // what should stand; nil: nothing
	Err   error  // why the newest intent for the key is not what Value says
}

// Want says that v should stand.
func Want(v Value) Change { return Change{Key: v.Key(), Value: &v} }

// Unwant says that nothing should stand under key.
func Unwant(key string) Change { return Change{Key: key} }

// Reject says that there is intent for key that cannot be followed, and that
// valid, what was valid before, should stand instead. Where nothing is known to
// have been valid (nil), what was wanted goes, but what was found standing stays:
// it may be what was valid before a restart. The key is
// INVALID, or UNIMPLEMENTED if err is ErrUnimplemented, until it changes.
func Reject(key string, err error, valid *Value) Change {
	return Change{Key: key, Value: valid, Err: err}
}

// Retry is how a failed value is tried again: after Period, then after twice
// that and so on up to Max, each up to a fifth longer by chance. What is due
// about the same time is tried together.
type RetryPolicy struct {
	Never  bool
	Period time.Duration // Defaults to 1 s
	Max    time.Duration // Defaults to 1 min
	Count  int           // attempts; 0: no end
}

func (r RetryPolicy) delay(attempt int) time.Duration {
	d, most := r.Period, r.Max
	if d <= 0 {
		d = time.Second
	}
	if most <= 0 {
		most = time.Minute
	}
	for ; attempt > 1 && d < most; attempt-- {
		d *= 2
	}
	return min(d, most)
}

// A TxnError lists the values of a transaction that failed, or that it made fail.
type TxnError struct {
	Failed []KeyError
}

// A KeyError says why a verb of a key failed.
type KeyError struct {
	Key  string
	Verb Verb
	Err  error
}

func (e KeyError) Error() string { return fmt.Sprintf("%s (%s): %v", e.Key, e.Verb, e.Err) }

func (e KeyError) Unwrap() error { return e.Err }

func (e *TxnError) Error() string {
	const most = 10
	var b strings.Builder
	b.WriteString("KeyErrors: [")
	for i, k := range e.Failed {
		if i == most {
			fmt.Fprintf(&b, ", and %d more", len(e.Failed)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(k.Error())
	}
	b.WriteString("]")
	return b.String()
}

func (e *TxnError) Unwrap() []error {
	out := make([]error, len(e.Failed))
	for i, k := range e.Failed {
		out[i] = k
	}
	return out
}

// terminal marks an error that trying again cannot mend.
type terminal struct{ error }

func (t terminal) Unwrap() error { return t.error }

// Terminal marks an error of a verb that trying again cannot mend: the value
// is FAILED until it changes.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return terminal{err}
}
