package scheduler

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/intent"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A Txn is an atomic change of the desired state.
type Txn struct {
	// Description is for people: the history and the transaction log have it.
	Description string
	// Changes may have several ones of a key: the last one counts. They must not change after
	// Commit.
	Changes []Change
	// Refresh first reads back the actual state. It also retries failed values, except for
	// Terminal errors.
	Refresh bool
	// Verbose logs each value that is read back.
	Verbose bool
	// Replace makes Changes the complete desired state. From then on, all other values of
	// ours are removed.
	Replace bool
	// Simulate plans the transaction before it is executed; see Options.Simulate.
	Simulate bool
	// Revert undoes the whole transaction if any change is invalid or any verb fails. Then
	// it is not retried; the values that the undoing restores are retried as before. Commit returns
	// the cause. The record also has the failures of the undoing, among the operations with Revert.
	Revert bool
	// Retry is the policy for the values in Changes that fail in this transaction. It
	// defaults to Options.Retry. Other values keep their retries; a value without retries
	// gets Options.Retry.
	Retry RetryPolicy
	// Withheld returns why no operation of a key, or of a value that is derived from its value, may begin now; nil: it
	// may. It is asked before each operation of the transaction, on any goroutine, also for keys that are not in
	// Changes, and must not block. A key whose operation does not begin is FAILED with that reason until it is declared
	// again. Defaults to never.
	Withheld func(key string) error
}

// A Change is the new intent for one key. Want, Unwant, Refuse and Value.Change make one. A
// transaction is refused as a whole if one of its changes has no key, an empty Value, a Value
// of another Scheduler, or another Key than its Value; see ErrMisuse.
//
// A program that keeps the last valid values itself sets Value and Err: Value is then the last
// valid value. Without it, the present desired value is removed, but a retrieved actual value
// stays: it may have been valid before a restart.
type Change struct {
	Key string
	// Value is the desired value; nil: none.
	Value *Value
	// Err is the reason why the newest intent cannot be followed; nil: it can.
	Err error
	// Refused is the message that Err refuses. Records of the history and of the transaction log
	// have it, if Value or Decode returned Err, and if it has at most 64 KiB.
	Refused proto.Message

	message proto.Message // of Want, until the transaction is checked
	keep    bool          // of Refuse: the present desired value stays
}

// Want makes message the desired value of key. Commit, Submit and Plan prepare it as
// [Scheduler.Value] does. If that fails, the change is Refuse with its error, so the last valid
// value stays, and Commit returns the error among others. A nil message is refused.
func Want(key string, message proto.Message) Change {
	if message == nil {
		return Refuse(key, errNoValue)
	}
	return Change{Key: key, message: message}
}

// Change makes v the desired value of its key.
func (v Value) Change() Change { return Change{Key: v.Key(), Value: &v} }

// Unwant removes the desired value of key.
func Unwant(key string) Change { return Change{Key: key} }

// Refuse marks the newest intent for key as refused because of err. The last valid value stays
// desired. The key is INVALID until it changes, or UNIMPLEMENTED if err is ErrUnimplemented.
func Refuse(key string, err error) Change { return Change{Key: key, Err: err, keep: true} }

// intents returns the changes in the form of package intent.
func (t *Txn) intents() intent.Changes {
	all := func(yield func(intent.Change) bool) {
		for i := range t.Changes {
			c := &t.Changes[i]
			one := intent.Change{Key: c.Key, Err: c.Err, Keep: c.keep}
			if c.Value != nil {
				one.Value = c.Value.v
			}
			if !yield(one) {
				return
			}
		}
	}
	return intent.Changes{All: all, Count: len(t.Changes), Replace: t.Replace}
}

// A RetryPolicy determines when a failed value is tried again: after Period, then after
// twice that time, and so on up to Max. Each delay is randomly extended by at most a
// fifth. Retries that are due at about the same time run together.
type RetryPolicy struct {
	// Never means that a failed value is FAILED at once.
	Never bool
	// Period is the delay of the first retry. Defaults to 1 s.
	Period time.Duration
	// Max bounds the delays. Defaults to 1 min.
	Max time.Duration
	// Count is the maximum number of retries. After it the value is FAILED. 0: no limit.
	Count int
}

// A TxnError lists the values that failed in a transaction.
type TxnError struct {
	Failed []KeyError
}

// A KeyError is the failure of one verb, or a mistake that Scheduler.Validate found in a value.
type KeyError struct {
	Key  string
	Base string // of a derived value that Validate found: the key of its base
	Verb Verb   // 0: Validate returned it, and no transaction
	Err  error
}

// Error is for people; the text is that of existing deployments.
func (e KeyError) Error() string {
	if e.Verb == 0 {
		return fmt.Sprintf("%s: %v", e.Key, e.Err)
	}
	return fmt.Sprintf("%s (%s): %v", e.Key, e.Verb, e.Err)
}

func (e KeyError) Unwrap() error { return e.Err }

// Error names the first values only: a transaction may have 100,000 failures. Failed has
// all of them.
func (e *TxnError) Error() string {
	return "KeyErrors: [" + kind.FirstTexts(10, len(e.Failed), func(i int) string { return e.Failed[i].Error() }) + "]"
}

// Unwrap returns each KeyError, so that errors.Is finds the reason of any value.
func (e *TxnError) Unwrap() []error {
	out := make([]error, len(e.Failed))
	for i, k := range e.Failed {
		out[i] = k
	}
	return out
}

// Terminal marks an error of a verb that a retry cannot fix: the value is FAILED until it
// changes.
func Terminal(err error) error { return kind.Terminal(err) }
