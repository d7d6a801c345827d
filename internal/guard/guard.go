// Package guard turns a panic into an error.
//
// It is for code that handles input of other programs: answers of servers, files, messages
// of VPP. Such input may find a bug in this program or in a library. The bug then costs one
// operation and not the process.
//
// A guarded function must not hold a lock when it panics, except by defer.
package guard

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanic is wrapped by the error of a function that panicked.
var ErrPanic = errors.New("internal error of the agent")

// A Panic is the error of a function that panicked. It wraps ErrPanic.
type Panic struct {
	Value any    // the argument of panic
	Stack string // of the goroutine, from the place of the panic
}

// Error has the value of the panic, without the stack.
func (p *Panic) Error() string { return fmt.Sprintf("%v: panic: %v", ErrPanic, p.Value) }

// Unwrap returns ErrPanic.
func (p *Panic) Unwrap() error { return ErrPanic }

// Run calls f and returns its error, or a *Panic.
func Run(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panic{Value: p, Stack: string(debug.Stack())}
		}
	}()
	return f()
}

// Detailed is Run for code of somebody else, such as a descriptor. The text of the error has the
// stack, because the author of that code needs it, and does not blame the agent.
func Detailed(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// Mapped is Run for a function that reads a file or a memory segment that is mapped.
// Another process may truncate it, and an access beyond its end is then a *Panic too
// (see BadAddress). Without Mapped it would end the process.
func Mapped(f func() error) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return Run(f)
}

// Stack returns the stack of the panic that err wraps, or "" if there is none.
func Stack(err error) string {
	if p, ok := errors.AsType[*Panic](err); ok {
		return p.Stack
	}
	return ""
}

// BadAddress reports whether the panic was an access to memory that does not exist, such as
// the part of a mapped file behind its end.
func (p *Panic) BadAddress() bool {
	fault, ok := p.Value.(interface{ Addr() uintptr })
	return ok && fault.Addr() != 0
}
