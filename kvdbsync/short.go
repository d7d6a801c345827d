package kvdbsync

import (
	"fmt"
	"slices"

	"github.com/keyplane/keyplane/internal/printable"
)

// MaxKey is the length of the longest key in bytes. Errors, logs and statuses show keys whole.
// The names of the models need a few hundred bytes.
const MaxKey = 4 << 10

// maxErrorText is the length of the longest text of an error in bytes. A store may send
// megabytes, and the texts are logged, shown and published.
const maxErrorText = 1 << 10

// A shortError is an error whose text is cut.
type shortError struct {
	text  string
	whole error
}

// Error returns the beginning of the text, and its length.
func (e *shortError) Error() string { return e.text }

// Unwrap makes errors.Is and errors.As find what the error wraps.
func (e *shortError) Unwrap() error { return e.whole }

// short cuts the text of an error.
func short(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) <= maxErrorText {
		return err
	}
	return &shortError{printable.Cut(text, maxErrorText), err}
}

// allShort cuts the texts of errors.
func allShort(errs []error) []error {
	errs = slices.Clone(errs)
	for i := range errs {
		errs[i] = short(errs[i])
	}
	return errs
}

// CheckKey returns a short error that wraps ErrTooMuch if a key is too long.
func CheckKey(key string) error {
	if len(key) <= MaxKey {
		return nil
	}
	return fmt.Errorf("%w: the key %q… has %d bytes; expected at most %d", ErrTooMuch, printable.Beginning(key, 80), len(key), MaxKey)
}

// A longKeys is the set of the keys of a store that are too long. They have no place in the
// mirror, and are one problem of the store. It knows them by their digests, and keeps the error of one.
type longKeys struct {
	digests map[[16]byte]bool
	first   [16]byte
	err     error // of first; nil: that is gone
}

// note records an event of a key that is too long.
func (l *longKeys) note(e Event) {
	digest := digestOf([]byte(e.Key))
	if e.Value == nil && e.Err == nil {
		delete(l.digests, digest)
		if digest == l.first {
			l.err = nil
		}
		return
	}
	if len(l.digests) == 0 {
		l.digests, l.first, l.err = map[[16]byte]bool{}, digest, CheckKey(e.Key)
	}
	l.digests[digest] = true
}

// problems returns those of the store, and that of its keys.
func (l *longKeys) problems(others []error) []error {
	switch n := len(l.digests); {
	case n == 0:
		return others
	case n == 1 && l.err != nil:
		return append(slices.Clip(others), fmt.Errorf("a key is ignored: %w", l.err))
	case l.err != nil:
		return append(slices.Clip(others), fmt.Errorf("%d keys are ignored, such as this one: %w", n, l.err))
	default:
		return append(slices.Clip(others), fmt.Errorf("%w: ignored keys with more than %d bytes: %d", ErrTooMuch, MaxKey, n))
	}
}
