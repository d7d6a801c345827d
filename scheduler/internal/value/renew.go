package value

import "errors"

// A Renewal is the error of a Create that finds that the value under Key, on which it depends, has nothing left
// for it: Key must be deleted and created again.
type Renewal struct {
	Key string
	Err error
}

// Error is the text of the cause.
func (r *Renewal) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Renewal) Unwrap() error { return r.Err }

// Renews returns the key of the value that must be created again because of err; empty: none.
func Renews(err error) string {
	if r, ok := errors.AsType[*Renewal](err); ok {
		return r.Key
	}
	return ""
}
