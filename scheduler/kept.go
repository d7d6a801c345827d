package scheduler

import (
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/printable"
)

// Maximum lengths of texts in a kept record, in bytes. Longer texts are cut.
const (
	mostErrorText = 1 << 10
	mostKeyText   = 4 << 10
)

// kept returns a copy of the record for the history and the transaction log. Errors are
// replaced by their texts, because an error may hold any memory. Texts are cut; values are
// complete. The record that Commit returns does not change.
func (r *Record) kept() *Record {
	k := *r
	k.Description = printable.Cut(k.Description, mostErrorText)
	if slices.ContainsFunc(k.Values, func(c Change) bool { return c.Err != nil || len(c.Key) > mostKeyText }) {
		k.Values = slices.Clone(k.Values)
		for i := range k.Values {
			c := &k.Values[i]
			c.Refused = refusedIn(c.Err)
			c.Key, c.Err = printable.Cut(c.Key, mostKeyText), textOnly(c.Err)
		}
	}
	k.Planned, k.Executed = keptOperations(k.Planned), keptOperations(k.Executed)
	k.RefreshErrors = slices.Clone(k.RefreshErrors)
	for i, err := range k.RefreshErrors {
		k.RefreshErrors[i] = textOnly(err)
	}
	return &k
}

// keptOperations returns ops itself if nothing in them must be replaced.
func keptOperations(ops []Operation) []Operation {
	if !slices.ContainsFunc(ops, func(o Operation) bool {
		return o.OldErr != nil || o.NewErr != nil || len(o.Waits) > 0 || len(o.Key) > mostKeyText
	}) {
		return ops
	}
	ops = slices.Clone(ops)
	for i := range ops {
		o := &ops[i]
		o.Key, o.OldErr, o.NewErr = printable.Cut(o.Key, mostKeyText), textOnly(o.OldErr), textOnly(o.NewErr)
		o.Waits = slices.Clone(o.Waits)
		for j, label := range o.Waits {
			o.Waits[j] = printable.Cut(label, mostErrorText)
		}
	}
	return ops
}

// errorText is the text of an error.
type errorText string

func (e errorText) Error() string { return string(e) }

func textOnly(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) <= mostErrorText {
		return errorText(strings.Clone(text)) // it may share the memory of a longer text
	}
	return errorText(printable.Cut(text, mostErrorText))
}
