package txnlog

import (
	"bytes"
	"fmt"
	"iter"
	"strings"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/scheduler"
)

// Line renders the record on one line: its number, its cause, the numbers of values by outcome,
// and one reason for each kind of failure.
//
//	#12 etcd: 3 created, 1 pending: route/10.1.0.0/16/eth7 waits for interface-is-up
//
// Properties are not counted: they have no existence of their own.
func Line(r *scheduler.Record) string { return headLine(r, true) }

// Lines renders the record as Line does, and below it each counted value on a line of its own, at
// most limit of them (negative: all). The reasons are on the lines of their values.
//
//	#12 etcd: 1 created, 1 pending
//	  created  interface/eth0
//	  pending  route/10.1.0.0/16/eth7 waits for interface-is-up
//
// A retry that fails as before has no news, and remains one line.
func Lines(r *scheduler.Record, limit int) string {
	if stale(r) {
		return Line(r)
	}
	var b bytes.Buffer
	b.WriteString(headLine(r, false))
	names, lines := outcomeNames(), 0
	for o, at := range counted(r) {
		lines++
		if limit >= 0 && lines > limit {
			continue
		}
		text := o.Key
		if at >= lastDone {
			text = reason(&o)
		}
		fmt.Fprintf(&b, "  %-8s %s\n", names[at], printable.Line(printable.Cut(text, maxErrorText)))
	}
	if limit >= 0 {
		moreText(&b, "  ", lines-limit, "values")
	}
	return b.String()
}

// headLine renders the line of a transaction, with or without the first reason of each kind of failure.
func headLine(r *scheduler.Record, reasons bool) string {
	text := outcome(r, reasons)
	if len(r.RefreshErrors) > 0 {
		text += fmt.Sprintf("; %d not read back: %s", len(r.RefreshErrors), firstLine(r.RefreshErrors[0]))
	}
	line := fmt.Sprintf("#%d %s: %s", r.Seq, cause(r), text)
	return printable.Line(printable.Cut(line, maxErrorText)) + "\n"
}

// cause returns the reason for the transaction.
func cause(r *scheduler.Record) string {
	description, _, _ := strings.Cut(r.Description, "\n")
	switch {
	case r.Type == scheduler.RetryFailed:
		return fmt.Sprintf("retry of #%d (attempt %d)", r.RetryOf, r.Attempt)
	case description != "":
		return description
	case r.Type == scheduler.Notification:
		return "notification"
	case r.Resync() != "":
		return r.Resync()
	}
	return "transaction"
}

// An outcome of values. Those before lastDone were done; the others have a reason.
const (
	created = iota
	recreated
	updated
	deleted
	found
	reverted
	lastDone

	failedNow = iota - 1
	invalidNow
	unimplemented
	pendingNow
	outcomes
)

// outcomeNames returns the names of outcomes in the summary line, in the order of the
// constants.
func outcomeNames() [outcomes]string {
	return [...]string{
		created: "created", recreated: "recreated", updated: "updated", deleted: "deleted", found: "found", reverted: "reverted",
		failedNow: "failed", invalidNow: "invalid", unimplemented: "unimplemented", pendingNow: "pending",
	}
}

// outcome counts the values by outcome, in the order of the constants, and says the first reason of each
// kind of failure if that is wanted.
func outcome(r *scheduler.Record, withReasons bool) string {
	var counts [outcomes]int
	var reasons [outcomes]string
	for o, at := range counted(r) {
		counts[at]++
		if withReasons && reasons[at] == "" && at >= lastDone {
			reasons[at] = reason(&o)
		}
	}
	var parts []string
	for at, name := range outcomeNames() {
		if counts[at] == 0 {
			continue
		}
		part := fmt.Sprintf("%d %s", counts[at], name)
		if reasons[at] != "" {
			part += ": " + reasons[at]
		}
		parts = append(parts, part)
	}
	if parts == nil {
		return "nothing to be done"
	}
	return strings.Join(parts, ", ")
}

// counted yields the operations that count, with their outcomes. A value that was taken away and put
// back, because another one was recreated, counts once: it is not pending.
func counted(r *scheduler.Record) iter.Seq2[scheduler.Operation, int] {
	back := putBack(&r.Executed)
	return func(yield func(scheduler.Operation, int) bool) {
		for _, o := range r.Executed.All() {
			at, counts := outcomeOf(&o)
			switch {
			case !counts || at == pendingNow && o.Verb == scheduler.Delete && back[o.Key]:
				continue
			case at == created && back[o.Key]:
				at = recreated
			}
			if !yield(o, at) {
				return
			}
		}
	}
}

// putBack returns the keys that were deleted although they are desired, and then created. Most
// transactions have none, and need no map.
func putBack(ops *scheduler.Operations) (out map[string]bool) {
	var away map[string]bool
	for _, o := range ops.All() {
		switch {
		case o.Verb == scheduler.Delete && o.NewState == scheduler.Pending:
			if away == nil {
				away = map[string]bool{}
			}
			away[o.Key] = true
		case o.Verb == scheduler.Create && !o.Noop && away[o.Key]:
			if out == nil {
				out = map[string]bool{}
			}
			out[o.Key] = true
		}
	}
	return out
}

// outcomeOf returns the outcome of an operation. Some count with another one: a Delete for a
// Create of the same value, and what only changes the state of a value.
func outcomeOf(o *scheduler.Operation) (at int, counted bool) {
	switch {
	case o.Property:
		return 0, false
	case o.NewErr != nil, o.Verb == scheduler.Validate, o.NewState == scheduler.Unimplemented:
		return refusalOf(o), true
	case o.Revert:
		return reverted, true
	case o.NewState == scheduler.Pending:
		return pendingNow, true
	case o.Noop && o.NewState == scheduler.Obtained:
		return found, true
	case o.Noop || o.Recreate && o.Verb == scheduler.Delete:
		return 0, false
	case o.Recreate && o.OldState == scheduler.Removed:
		return recreated, true
	case o.Verb == scheduler.Update:
		return updated, true
	case o.Verb == scheduler.Delete:
		return deleted, true
	}
	return created, true
}

// refusalOf returns the outcome of an operation that did not succeed.
func refusalOf(o *scheduler.Operation) int {
	switch {
	case o.NewState == scheduler.Unimplemented:
		return unimplemented
	case o.Verb == scheduler.Validate:
		return invalidNow
	}
	return failedNow
}

// reason returns why a value was not done.
func reason(o *scheduler.Operation) string {
	switch {
	case o.NewErr != nil:
		return o.Key + ": " + firstLine(o.NewErr)
	case len(o.Waits) > 0:
		return o.Key + " waits for " + strings.Join(o.Waits, ", ")
	}
	return o.Key
}
