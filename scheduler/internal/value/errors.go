package value

// Errors are the errors of a key. The zero Errors has none. A copy does not change with the original.
type Errors struct{ of *errorPair } // nil: none, as of most keys

// An errorPair is immutable.
type errorPair struct{ failure, rejection error }

// Failure is why the last operation failed; nil: it did not.
func (e Errors) Failure() error {
	if e.of == nil {
		return nil
	}
	return e.of.failure
}

// Rejection is why the newest desired value was refused; nil: it was not.
func (e Errors) Rejection() error {
	if e.of == nil {
		return nil
	}
	return e.of.rejection
}

// None reports that there are no errors.
func (e Errors) None() bool { return e.of == nil }

// SetFailure sets the failure; nil: none.
func (e *Errors) SetFailure(err error) { e.set(errorPair{err, e.Rejection()}) }

// SetRejection sets the rejection; nil: none.
func (e *Errors) SetRejection(err error) { e.set(errorPair{e.Failure(), err}) }

func (e *Errors) set(p errorPair) {
	e.of = nil
	if p.failure != nil || p.rejection != nil {
		kept := p // so that only this path allocates
		e.of = &kept
	}
}
