package kvdbsync

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrFault says that the agent panicked. It is an error of the watch, the session or the
// request in which that happened.
var ErrFault = errors.New("the agent has a fault")

// A fault is a panic that was caught.
type fault struct {
	text  string
	stack string
}

func (f *fault) Error() string { return ErrFault.Error() + ": " + f.text }

func (f *fault) Unwrap() error { return ErrFault }

// Guarded runs f and returns its error. If f panics, Guarded returns an error that wraps
// ErrFault. Each goroutine that handles what a store sends runs under it: the
// answers of a broken or hostile server must not end the process. f keeps no mutex locked
// when it panics.
func Guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &fault{text: fmt.Sprint(p), stack: string(debug.Stack())}
		}
	}()
	return f()
}

// FaultStack is the stack of the panic that err comes from; empty: it comes from none.
func FaultStack(err error) string {
	var f *fault
	if errors.As(err, &f) {
		return f.stack
	}
	return ""
}
