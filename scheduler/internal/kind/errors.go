package kind

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// ErrUnimplemented is the error of a key without a descriptor; see scheduler.ErrUnimplemented.
var ErrUnimplemented = errors.New("no descriptor implements this key")

// ErrInvalid is the error of a value that can never be applied; see scheduler.ErrInvalid.
var ErrInvalid = errors.New("invalid value")

// invalidError is ErrInvalid with its reasons on one line.
type invalidError struct{ reasons error }

// Invalid returns ErrInvalid with its reasons.
func Invalid(reasons error) error { return &invalidError{reasons} }

func (e *invalidError) Error() string {
	return ErrInvalid.Error() + ": " + strings.ReplaceAll(e.reasons.Error(), "\n", "; ")
}

func (e *invalidError) Unwrap() []error { return []error{ErrInvalid, e.reasons} }

// A Conflict means that another value holds a claimed resource.
type Conflict struct {
	Holder string // key
	Err    *models.FieldError
}

func (e *Conflict) Error() string { return e.Err.Error() }

func (e *Conflict) Unwrap() error { return e.Err }

// ErrOf returns the error of n in its public form.
func ErrOf(n *graph.Node) error {
	err := n.Err()
	if taken, ok := err.(*value.ClaimError); ok { //nolint:errorlint // it is never wrapped
		var reasons []error
		for _, l := range taken.Lost {
			reasons = append(reasons, &Conflict{Holder: l.Holder, Err: &models.FieldError{Field: l.Field, Value: l.Value, Expected: fmt.Sprintf("%s (see %s)", l.Want, l.Holder)}})
		}
		return Invalid(errors.Join(reasons...))
	}
	return err
}

// terminal marks an error that a retry cannot fix.
type terminal struct{ error }

func (t terminal) Unwrap() error { return t.error }

// Terminal marks an error of a verb; see scheduler.Terminal.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return terminal{err}
}

// Retriable reports whether a retry may fix the error of a verb.
func Retriable(err error) bool {
	var t terminal
	return !errors.As(err, &t) && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrUnimplemented) && !errors.Is(err, executor.ErrNoAnswer) && !errors.Is(err, executor.ErrWithheld)
}

// A refusal is the reason why a message cannot be applied, with the message: records show it.
type refusal struct {
	error
	message proto.Message
}

func (r *refusal) Unwrap() error { return r.error }

// mostRefused is the size, in bytes, of the largest message that its refusal keeps. A decoded
// message can take ten times its bytes, and each source, the state of the key and the history
// may keep several refusals. People who have made a mistake in a larger value have the path of
// the bad field.
const mostRefused = 64 << 10

// refuse adds the message to an error, unless it is large; nil stays nil.
func refuse(err error, message proto.Message) error {
	if err == nil || proto.Size(message) > mostRefused {
		return err
	}
	return &refusal{err, message}
}

// RefusedIn returns the message that err refuses, or nil.
func RefusedIn(err error) proto.Message {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.message
	}
	return nil
}

// FirstTexts joins up to most of n texts, and names the number of the others.
func FirstTexts(most, n int, text func(i int) string) string {
	var b strings.Builder
	for i := range min(most, n) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text(i))
	}
	if n > most {
		fmt.Fprintf(&b, ", and %d more", n-most)
	}
	return b.String()
}
