package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Maximum lengths of texts in a kept record, in bytes. Longer texts are cut.
const (
	mostErrorText = 1 << 10
	mostKeyText   = 4 << 10
)

// mostValueText is the maximum length of a value in the transaction log, in bytes.
const mostValueText = 16 << 10

// kept returns a copy of the record for the history and the transaction log. Errors are
// replaced by their texts, because an error may hold any memory. Texts are cut; values are
// complete. The record that Commit returns does not change.
func (r *Record) kept() *Record {
	k := *r
	k.Description = cut(k.Description, mostErrorText)
	if slices.ContainsFunc(k.Values, func(c Change) bool { return c.Err != nil || len(c.Key) > mostKeyText }) {
		k.Values = slices.Clone(k.Values)
		for i := range k.Values {
			c := &k.Values[i]
			c.Key, c.Err = cut(c.Key, mostKeyText), textOnly(c.Err)
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
		o.Key, o.OldErr, o.NewErr = cut(o.Key, mostKeyText), textOnly(o.OldErr), textOnly(o.NewErr)
		o.Waits = slices.Clone(o.Waits)
		for j, label := range o.Waits {
			o.Waits[j] = cut(label, mostErrorText)
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
	return errorText(cut(text, mostErrorText))
}

// cut shortens text that is longer than most bytes, and appends its length. The result
// does not keep the memory of the longer text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:end], len(text))
}
