package scheduler

import (
	"slices"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/scheduler/internal/history"
)

// mostKeyText is the maximum length of a key in a kept record, in bytes. Longer ones are cut.
const mostKeyText = 4 << 10

// History returns the kept records, oldest first. Their errors have the text only. A text
// longer than 1 KiB or a key longer than 4 KiB is cut and ends with "… (N bytes)".
func (s *Scheduler) History() []*Record { return s.history.All() }

// kept returns a copy of the record for the history and the transaction log. Errors are
// replaced by their texts, because an error may hold any memory. Texts are cut; values are
// complete. The record that Commit returns does not change.
func (r *Record) kept() *Record {
	k := *r
	k.Description = printable.Cut(k.Description, history.MaxText)
	if slices.ContainsFunc(k.Values, func(c Change) bool { return c.Err != nil || len(c.Key) > mostKeyText }) {
		k.Values = slices.Clone(k.Values)
		for i := range k.Values {
			c := &k.Values[i]
			c.Refused = refusedIn(c.Err)
			c.Key, c.Err = printable.Cut(c.Key, mostKeyText), history.Text(c.Err)
		}
	}
	k.Planned, k.Executed = keptOperations(k.Planned), keptOperations(k.Executed)
	k.RefreshErrors = slices.Clone(k.RefreshErrors)
	for i, err := range k.RefreshErrors {
		k.RefreshErrors[i] = history.Text(err)
	}
	return &k
}

// keptOperations returns ops itself if nothing in them must be replaced. Most operations
// have no error and a short key, so most records share their operations with the caller of
// Commit.
func keptOperations(ops []Operation) []Operation {
	if !slices.ContainsFunc(ops, func(o Operation) bool {
		return o.OldErr != nil || o.NewErr != nil || len(o.Waits) > 0 || len(o.Key) > mostKeyText
	}) {
		return ops
	}
	ops = slices.Clone(ops)
	for i := range ops {
		o := &ops[i]
		o.Key, o.OldErr, o.NewErr = printable.Cut(o.Key, mostKeyText), history.Text(o.OldErr), history.Text(o.NewErr)
		o.Waits = slices.Clone(o.Waits)
		for j, label := range o.Waits {
			o.Waits[j] = printable.Cut(label, history.MaxText)
		}
	}
	return ops
}
