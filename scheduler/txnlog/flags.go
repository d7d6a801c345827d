package txnlog

import (
	"github.com/keyplane/keyplane/scheduler"
)

// words are the marks of an operation.
type words []string

// add adds a word if it applies.
func (w *words) add(applies bool, word string) {
	if applies {
		*w = append(*w, word)
	}
}

// Flags returns the words that mark the operation in the text: first those of the operation itself,
// then those of the change of state.
func Flags(o *scheduler.Operation) []string {
	var out words
	out.add(o.Derived, "DERIVED")
	out.add(o.Property, "PROPERTY")
	out.add(o.Noop, "NOOP")
	out.add(o.Revert, "REVERT")
	out.add(o.Retry, "RETRY")
	out.add(o.Recreate, "RECREATE")
	out.addStates(o)
	out.addProblems(o)
	return out
}

// addStates adds the words for states without a problem.
func (w *words) addStates(o *scheduler.Operation) {
	const (
		obtained      = scheduler.Obtained
		unimplemented = scheduler.Unimplemented
		missing       = scheduler.Missing
		removed       = scheduler.Removed
	)
	was, is := o.OldState, o.NewState
	w.add(is == obtained, "OBTAINED")
	w.add(was == obtained && is != obtained, "WAS-OBTAINED")
	w.add(is == unimplemented, "UNIMPLEMENTED")
	w.add(was == unimplemented && is != unimplemented, "WAS-UNIMPLEMENTED")
	w.add(was == missing && is == removed, "ALREADY-MISSING")
	w.add(was == missing && is != removed, "WAS-MISSING")
	w.add(was == scheduler.Discovered, "DISCOVERED")
	w.add(pending(was) && pending(is), "STILL-PENDING")
	w.add(pending(was) && !pending(is), "WAS-PENDING")
	w.add(!pending(was) && pending(is), "IS-PENDING")
}

// addProblems adds the words for failed and refused values.
func (w *words) addProblems(o *scheduler.Operation) {
	was, is := o.OldState, o.NewState
	// The verb of a value that is also INVALID applied the last valid one.
	fails := failed(is) || invalid(is) && o.NewErr != nil && o.Verb != scheduler.Validate
	w.add(failed(was) && fails, "STILL-FAILING")
	w.add(failed(was) && !fails, "FIXED")
	w.add(!failed(was) && fails, "FAILED")
	w.add(invalid(was) && invalid(is), "STILL-INVALID")
	w.add(invalid(was) && !invalid(is), "FIXED")
	w.add(!invalid(was) && invalid(is), "INVALID")
}

// pending reports whether the value waits for dependencies or a connection.
func pending(s scheduler.State) bool { return s == scheduler.Pending }

// invalid reports whether the value was refused.
func invalid(s scheduler.State) bool { return s == scheduler.Invalid }

// failed reports whether a verb of the value failed, with or without another attempt.
func failed(s scheduler.State) bool {
	return s == scheduler.Failed || s == scheduler.Retrying
}
