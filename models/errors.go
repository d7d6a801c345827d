package models

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

var (
	// ErrNoModel reports that no model has this key or message.
	ErrNoModel = errors.New("no such model")
	// ErrKeyMismatch reports that the content of a value makes a different key. The
	// error also contains a [FieldError] for each field that disagrees.
	ErrKeyMismatch = errors.New("key and value disagree")
	// ErrNotJSON reports that data is not a JSON object: malformed, empty, binary,
	// or another JSON type.
	ErrNotJSON = errors.New("not a JSON object")
	// ErrTooLarge reports that data is longer than [MaxSize].
	ErrTooLarge = errors.New("value too large")
)

// A FieldError reports an invalid field of a value, and the allowed values.
type FieldError struct {
	// Field is the path of the field with the names of the .proto file, "ip_addresses[1]",
	// "veth.peer_if_name", or as the user's JSON spells them: see SpellFields.
	Field string
	// Value is the value of the field, or what an error shows of a long one; nil: the message omits
	// it, as it must with a secret.
	Value any
	// Expected describes the allowed values: `an address with prefix length, such as
	// "10.0.0.1/24"`. Empty: the field is required.
	Expected string
}

// Error implements error: "mtu is 10000; expected at most 9216".
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

// mostProblems is the maximum number of errors about one value that are listed.
const mostProblems = 8

// Faults collects the errors of a value. It keeps the first 8 and counts the others, so that
// a list of 100,000 bad addresses costs no more memory than one of 8. The zero Faults is empty.
type Faults struct {
	found []error
	more  int
	cut   bool // an error was replaced by the beginning of its text
}

// Add adds a FieldError. The text of allowed values is formatted with args.
func (f *Faults) Add(field string, value any, want string, args ...any) {
	if !f.Full() {
		f.found = append(f.found, fieldError(field, value, fmt.Sprintf(want, args...)))
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
		short := shortError(err)
		f.cut = f.cut || short != err //nolint:errorlint // whether it is another one
		f.found = append(f.found, short)
	}
}

// Full reports that further errors are only counted.
func (f *Faults) Full() bool { return len(f.found) >= mostProblems }

// Err joins the errors and, if there are more, their number. It returns nil without
// errors.
func (f *Faults) Err() error {
	if f.more == 0 {
		return errors.Join(f.found...)
	}
	return errors.Join(append(slices.Clip(f.found), moreErrors(f.more))...)
}

// A moreErrors is the number of errors that are not listed.
type moreErrors int

// Error implements error.
func (n moreErrors) Error() string { return "and " + thousands(int(n)) + " more" }

// thousands formats a number with commas: 99,992.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Bounded returns err, or the first 8 of its joined errors and the number of the
// others. Nested joins count by their elements. What a FieldError in err has of a long value
// becomes what it shows of it, and another error with a long text becomes the beginning of that text.
//
// It changes the FieldErrors, so err must not be shared.
func Bounded(err error) error {
	for _, e := range fieldsOf(err) {
		*e = *fieldError(e.Field, e.Value, e.Expected)
	}
	var f Faults
	f.addAll(err)
	if f.more == 0 && !f.cut {
		return err
	}
	return f.Err()
}

// addAll adds an error, or the elements of a join.
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

// Ignored returns the warning that a field has no effect, with the reason. The text
// begins with the path of the field.
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

// FieldErrors returns the FieldErrors in err, in order.
func FieldErrors(err error) []*FieldError { return fieldsOf(err) }

// fieldsOf returns the FieldErrors in err, in order.
func fieldsOf(err error) (out []*FieldError) {
	switch e := err.(type) { //nolint:errorlint // the loop unwraps joins itself
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

// Also returns err together with those FieldErrors of more that concern other
// fields. Neither argument is nil.
func Also(err, more error) error {
	reported := map[string]bool{}
	for _, field := range Fields(err) {
		reported[field] = true
	}
	all := fieldErrors{err}
	for _, e := range fieldsOf(more) {
		if !reported[e.Field] {
			all = append(all, e)
		}
	}
	if len(all) == 1 {
		return err
	}
	return all
}

// fieldErrors are errors about fields, printed on one line.
type fieldErrors []error

// Error implements error.
func (es fieldErrors) Error() string {
	texts := make([]string, len(es))
	for i, e := range es {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (es fieldErrors) Unwrap() []error { return es }

// orNil returns es as an error, or nil if it is empty. A nil slice in an error would
// not be nil.
func (es fieldErrors) orNil() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

// Errors are kept for as long as their value is invalid, and a value may have megabytes of text. These are
// the most bytes that they keep of it.
const (
	longestShown    = 80
	longestField    = 300
	longestExpected = 1000
	longestText     = 4 << 10 // of an error that is no FieldError
)

// fieldError returns a FieldError that keeps little of long texts.
func fieldError(field string, value any, expected string) *FieldError {
	return &FieldError{Field: cut(field, longestField), Value: short(value), Expected: cut(expected, longestExpected)}
}

// shortError returns err, or the beginning of a long text.
func shortError(err error) error {
	text := err.Error()
	if len(text) <= longestText {
		return err
	}
	short := &cutError{text: cut(text, longestText)}
	for _, e := range fieldsOf(err) {
		short.fields = append(short.fields, e)
	}
	return short
}

// A cutError is the beginning of the text of an error, with its FieldErrors.
type cutError struct {
	text   string
	fields fieldErrors
}

// Error implements error.
func (e *cutError) Error() string { return e.text }

// Unwrap returns the FieldErrors.
func (e *cutError) Unwrap() []error { return e.fields }

// An excerpt is what errors show of a value.
type excerpt string

// short returns a value that fits into an error, or what an error shows of it.
func short(v any) any {
	if s, ok := v.(string); ok && len(s) <= longestShown {
		return strings.Clone(s) // it may be a part of a long text
	}
	switch reflect.ValueOf(v).Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct, reflect.Pointer, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return excerpt(show(v))
	default: // nothing, or a number
		return v
	}
}

// show formats a value for an error: text is quoted, long values are cut.
func show(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(cut(v, longestShown))
	case excerpt:
		return string(v)
	}
	return cut(fmt.Sprint(v), longestShown)
}

// cut shortens s to about most bytes. The result keeps nothing else of s.
func cut(s string, most int) string {
	if len(s) <= most {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
