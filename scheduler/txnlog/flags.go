package txnlog

import (
	"github.com/keyplane/keyplane/scheduler"
)

// Flags returns the words that mark the operation in the text.
func Flags(o *scheduler.Operation) (out []string) {
	add := func(is bool, flag string) {
		if is {
			out = append(out, flag)
		}
	}
	add(o.Derived, "DERIVED")
	add(o.Property, "PROPERTY")
	add(o.Noop, "NOOP")
	add(o.Revert, "REVERT")
	add(o.Retry, "RETRY")
	add(o.Recreate, "RECREATE")
	const (
		obtained      = scheduler.Obtained
		unimplemented = scheduler.Unimplemented
		missing       = scheduler.Missing
		removed       = scheduler.Removed
	)
	was, is := o.OldState, o.NewState
	add(is == obtained, "OBTAINED")
	add(was == obtained && is != obtained, "WAS-OBTAINED")
	add(is == unimplemented, "UNIMPLEMENTED")
	add(was == unimplemented && is != unimplemented, "WAS-UNIMPLEMENTED")
	add(was == missing && is == removed, "ALREADY-MISSING")
	add(was == missing && is != removed, "WAS-MISSING")
	add(was == scheduler.Discovered, "DISCOVERED")
	add(pending(was) && pending(is), "STILL-PENDING")
	add(pending(was) && !pending(is), "WAS-PENDING")
	add(!pending(was) && pending(is), "IS-PENDING")
	// The verb of a value that is also INVALID applied the last valid one.
	fails := failed(is) || invalid(is) && o.NewErr != nil && o.Verb != scheduler.Validate
	add(failed(was) && fails, "STILL-FAILING")
	add(failed(was) && !fails, "FIXED")
	add(!failed(was) && fails, "FAILED")
	add(invalid(was) && invalid(is), "STILL-INVALID")
	add(invalid(was) && !invalid(is), "FIXED")
	add(!invalid(was) && invalid(is), "INVALID")
	return out
}

// pending reports whether the value waits for dependencies or a connection.
func pending(s scheduler.State) bool { return s == scheduler.Pending }

// invalid reports whether the value was refused.
func invalid(s scheduler.State) bool { return s == scheduler.Invalid }

// failed reports whether a verb of the value failed, with or without another attempt.
func failed(s scheduler.State) bool {
	return s == scheduler.Failed || s == scheduler.Retrying
}
