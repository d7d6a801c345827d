package models

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var (
	// ErrNoModel says that a key, or a message, is of no model.
	ErrNoModel = errors.New("no such model")
	// ErrKeyMismatch says that a value makes another key than the one it is
	// under. The error also holds a [FieldError] for each field that disagrees.
	ErrKeyMismatch = errors.New("key and value disagree")
	// ErrNotJSON says that data is no JSON object at all: malformed, empty, binary,
	// another kind of JSON.
	ErrNotJSON = errors.New("not a JSON object")
	// ErrTooLarge says that data is longer than [MaxSize].
	ErrTooLarge = errors.New("value too large")
)

// A FieldError reports an invalid field of a value, and the allowed values.
type FieldError struct {
	Field    string // path with proto names: "ip_addresses[1]", "veth.peer_if_name"
	Value    any    // what the field holds; nil: nothing worth showing
	Expected string // allowed values: `an address with prefix length, such as "10.0.0.1/24"`; empty: the field is required
}

func (e *FieldError) Error() string {
	switch {
	case e.Expected == "":
		return e.Field + " is required"
	case e.Value == nil:
		return fmt.Sprintf("%s: expected %s", e.Field, e.Expected)
	case e.Value == "":
		return fmt.Sprintf("%s is empty; expected %s", e.Field, e.Expected)
	}
	return fmt.Sprintf("%s is %s; expected %s", e.Field, show(e.Value), e.Expected)
}

// mostProblems is how many errors about one value are told, one by one.
const mostProblems = 8

// Faults collects the errors of a value. It keeps the first 8 and counts the others, so that
// a list of 100,000 bad addresses costs no more memory than one of 8. The zero Faults is empty.
type Faults struct {
	found []error
	more  int
}

// Add adds a FieldError; want is formatted with args.
func (f *Faults) Add(field string, value any, want string, args ...any) {
	if !f.Full() {
		f.found = append(f.found, &FieldError{Field: field, Value: value, Expected: fmt.Sprintf(want, args...)})
		return
	}
	f.more++
}

// AddError adds an error; nil adds none.
func (f *Faults) AddError(err error) {
	switch {
	case err == nil:
	case f.Full():
		f.more++
	default:
		f.found = append(f.found, err)
	}
}

// Full tells that further errors are only counted.
func (f *Faults) Full() bool { return len(f.found) >= mostProblems }

// Err joins the errors, with a last one that counts those left out. It is nil if there are none.
func (f *Faults) Err() error {
	if f.more == 0 {
		return errors.Join(f.found...)
	}
	return errors.Join(append(slices.Clip(f.found), moreErrors(f.more))...)
}

// A moreErrors is the number of errors that are not told.
type moreErrors int

func (n moreErrors) Error() string { return "and " + thousands(int(n)) + " more" }

// thousands writes a number with commas: 99,992.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Bounded returns err, or the first 8 of the errors that it joins and the number of the others.
// Errors within those that are joined count one by one.
func Bounded(err error) error {
	var f Faults
	f.addAll(err)
	if f.more == 0 {
		return err
	}
	return f.Err()
}

func (f *Faults) addAll(err error) {
	if more, counted := err.(moreErrors); counted { //nolint:errorlint // an element of a join
		f.more += int(more)
		return
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		f.AddError(err)
		return
	}
	for _, one := range joined.Unwrap() {
		f.addAll(one)
	}
}

// Ignored is a warning: a field of a value has no effect, and why. The text begins with the path.
func Ignored(field string, value any, why string, args ...any) string {
	return fmt.Sprintf("%s: %s is ignored: %s", field, show(value), fmt.Sprintf(why, args...))
}

// Fields returns the paths of the invalid fields in err, in order.
func Fields(err error) (out []string) {
	for _, e := range fieldsOf(err) {
		out = append(out, e.Field)
	}
	return out
}

func fieldsOf(err error) (out []*FieldError) {
	switch e := err.(type) { //nolint:errorlint // it unwraps what it meets itself
	case nil:
	case *FieldError:
		out = append(out, e)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			out = append(out, fieldsOf(one)...)
		}
	default:
		out = fieldsOf(errors.Unwrap(err))
	}
	return out
}

// Also is err and what more says of other fields; neither is nil.
func Also(err, more error) error {
	said := map[string]bool{}
	for _, field := range Fields(err) {
		said[field] = true
	}
	all := fieldErrors{err}
	for _, e := range fieldsOf(more) {
		if !said[e.Field] {
			all = append(all, e)
		}
	}
	if len(all) == 1 {
		return err
	}
	return all
}

// fieldErrors are one or more errors about fields, on one line.
type fieldErrors []error

func (es fieldErrors) Error() string {
	texts := make([]string, len(es))
	for i, e := range es {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "; ")
}

func (es fieldErrors) Unwrap() []error { return es }

// orNil is es as an error, nil where there are none.
func (es fieldErrors) orNil() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

// show renders a value for an error: text quoted, and cut where it is long.
func show(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(cut(s, 80))
	}
	return cut(fmt.Sprint(v), 80)
}

// cut shortens s to about most bytes.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
