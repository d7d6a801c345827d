package kvdbsync

import (
	"fmt"
	"slices"
	"unicode/utf8"

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

// CheckKey returns a short error if a key is too long, which wraps ErrTooMuch, or if it is not UTF-8: the messages of
// gRPC, JSON and YAML have no place for such a key.
func CheckKey(key string) error {
	switch {
	case len(key) > MaxKey:
		return fmt.Errorf("%w: the key %q… has %d bytes; expected at most %d", ErrTooMuch, printable.Beginning(key, 80), len(key), MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("the key %.200q is not UTF-8 text", key)
	}
	return nil
}

// Ignored are the keys of a store that are not taken: bad ones, and those for which there is no room. They have no place in
// the mirror, and are one problem of the store. It knows them by their digests, and keeps the reason of one.
type ignored struct {
	digests map[[16]byte]bool
	first   [16]byte
	err     error // of first; nil: that is gone
}

// note records an event of such a key, and the reason.
func (k *ignored) note(e Event, why error) {
	digest := digestOf([]byte(e.Key))
	if e.Value == nil && e.Err == nil {
		k.drop(digest)
		return
	}
	if len(k.digests) == 0 {
		k.digests, k.first, k.err = map[[16]byte]bool{}, digest, why
	}
	k.digests[digest] = true
}

// any reports whether there are such keys.
func (k *ignored) any() bool { return len(k.digests) > 0 }

// drop forgets a key.
func (k *ignored) drop(digest [16]byte) {
	delete(k.digests, digest)
	if digest == k.first {
		k.err = nil
	}
}

// problems returns those of the store, and that of its keys.
func (k *ignored) problems(others []error) []error {
	switch n := len(k.digests); {
	case n == 0:
		return others
	case n == 1 && k.err != nil:
		return append(slices.Clip(others), fmt.Errorf("a key is ignored: %w", k.err))
	case k.err != nil:
		return append(slices.Clip(others), fmt.Errorf("%d keys are ignored, such as this one: %w", n, k.err))
	default:
		return append(slices.Clip(others), fmt.Errorf("ignored keys that have more than %d bytes, are not UTF-8 text, or exceed max-keys: %d", MaxKey, n))
	}
}
