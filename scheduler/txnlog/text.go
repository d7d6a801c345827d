package txnlog

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

const (
	textWidth    = 120
	maxErrorText = 1 << 10 // bytes; longer texts are cut
)

// Text renders the record with at most limit values and operations. A negative limit means
// all.
func Text(r *scheduler.Record, limit int) string {
	var b bytes.Buffer
	fullText(&b, r, limit)
	return b.String()
}

// fullText writes both parts of the text of a record.
func fullText(b *bytes.Buffer, r *scheduler.Record, limit int) {
	beginText(b, r, limit)
	endText(b, r, limit)
}

// PlanText renders the planned operations of the record in the form of Text.
func PlanText(r *scheduler.Record, limit int) string {
	var b bytes.Buffer
	planText(&b, r, limit)
	return b.String()
}

// planText writes the operations that were planned before the first one ran.
func planText(b *bytes.Buffer, r *scheduler.Record, limit int) {
	b.WriteString("  * planned operations:\n")
	operationsText(b, &r.Planned, limit)
}

// beginText writes the part of the record that is known before the first operation.
func beginText(b *bytes.Buffer, r *scheduler.Record, limit int) {
	left := fmt.Sprintf("| #%d - %s", r.Seq, r.Type)
	right := info(r) + " |"
	bar := "+" + strings.Repeat("=", textWidth-2) + "+\n"
	b.WriteString(bar)
	fmt.Fprintf(b, "%s%*s\n", left, max(textWidth-len(left), len(right)+1), right)
	b.WriteString(bar)
	argumentsText(b, r, limit)
	if r.Simulated || r.Planned.Len() > 0 {
		planText(b, r, limit)
	}
}

// operationsText writes up to limit operations, and counts the rest by their kind.
func operationsText(b *bytes.Buffer, ops *scheduler.Operations, limit int) {
	if ops.Len() == 0 {
		b.WriteString("      <NONE>\n")
	}
	shown := bounded(ops.Len(), limit)
	for i := range shown {
		op := ops.At(i)
		operationText(b, &op, i+1)
	}
	countText(b, ops.Part(shown, ops.Len()), limit)
}

// info returns a short text beside the number of the transaction.
func info(r *scheduler.Record) string {
	if r.Type == scheduler.RetryFailed {
		return fmt.Sprintf("retrying failed TXN #%d (attempt %d)", r.RetryOf, r.Attempt)
	}
	return r.Resync()
}

// kindText returns the kind of the transaction in the words of earlier releases, which
// tools search for.
func kindText(r *scheduler.Record) string {
	kind := map[string]string{"FullResync": ", Full Resync", "UpstreamResync": ", NB Sync", "DownstreamResync": ", SB Sync"}[r.Resync()]
	if r.Type == scheduler.RetryFailed {
		return fmt.Sprintf("%s (for txn #%d, attempt #%d)", r.Type, r.RetryOf, r.Attempt)
	}
	return r.Type.String() + kind
}

// argumentsText writes the transaction as it was requested.
func argumentsText(b *bytes.Buffer, r *scheduler.Record, limit int) {
	fmt.Fprintf(b, "  * transaction arguments:\n      - seqNum: %d\n      - type: %s\n", r.Seq, kindText(r))
	if r.Description != "" {
		fmt.Fprintf(b, "      - Description: %s\n", strings.ReplaceAll(printable.Text(r.Description), "\n", "\n                     "))
	}
	if len(r.Values) == 0 {
		if !r.Refresh {
			b.WriteString("      - values: NONE\n")
		}
		return
	}
	b.WriteString("      - values:\n")
	shown := bounded(len(r.Values), limit)
	for _, c := range r.Values[:shown] {
		fmt.Fprintf(b, "          - key: %s\n            val: %s\n", printable.Line(c.Key), changeText(c))
	}
	moreText(b, "          ", len(r.Values)-shown, "values")
}

// changeText returns the value of a change; NIL removes, and REFUSED keeps the last valid
// one.
func changeText(c scheduler.Change) string {
	switch {
	case c.Err != nil:
		if c.Refused != nil {
			return value.Line(c.Refused) + " <REFUSED> " + errorLine(c.Err)
		}
		return "<REFUSED> " + errorLine(c.Err)
	case c.Value == nil:
		return "<NIL>"
	}
	return value.Line(c.Value.Message())
}

// stale reports whether the record is a retry with the same failures as before.
func stale(r *scheduler.Record) bool {
	return r.Type == scheduler.RetryFailed && !r.Executed.Any(func(o scheduler.Operation) bool {
		return o.NewErr == nil || o.OldErr == nil || o.OldErr.Error() != o.NewErr.Error()
	})
}

// staleText is one line for a stale retry.
func staleText(r *scheduler.Record) string {
	if r.Executed.Len() == 0 {
		return fmt.Sprintf("| #%d - %s (attempt #%d): nothing to be done\n", r.Seq, r.Type, r.Attempt)
	}
	first := r.Executed.At(0)
	return fmt.Sprintf("| #%d - %s (attempt #%d): %d still failing, one is %s: %s\n",
		r.Seq, r.Type, r.Attempt, r.Executed.Len(), printable.Line(first.Key), printable.Line(firstLine(first.NewErr)))
}

// endText writes the executed part of the record.
func endText(b *bytes.Buffer, r *scheduler.Record, limit int) {
	bar := strings.Repeat("-", textWidth-2)
	fmt.Fprintf(b, "o%so\n", bar)
	notRead := bounded(len(r.RefreshErrors), limit)
	for _, err := range r.RefreshErrors[:notRead] {
		fmt.Fprintf(b, "  * not read back: %s\n", errorLine(err))
	}
	moreText(b, "  * ", len(r.RefreshErrors)-notRead, "not read back")
	b.WriteString("  * executed operations")
	if r.Executed.Len() > 0 {
		fmt.Fprintf(b, " (%s -> %s, dur: %s)", clock(r.Start), clock(r.Stop), took(r))
	}
	b.WriteString(":\n")
	operationsText(b, &r.Executed, limit)
	fmt.Fprintf(b, "x%sx\n", bar)
	left := fmt.Sprintf("| #%d - %s", r.Seq, r.Type)
	right := fmt.Sprintf("took %s |", took(r))
	fmt.Fprintf(b, "%s%*s\nx%sx\n", left, max(textWidth-len(left), len(right)+1), right, bar)
}

// took returns the duration in microseconds: finer digits say nothing.
func took(r *scheduler.Record) time.Duration { return r.Stop.Sub(r.Start).Round(time.Microsecond) }

// clock returns a time of the day in milliseconds, in the local zone.
func clock(t time.Time) string { return t.Format("2006-01-02 15:04:05.000") }

// countText counts the omitted operations by verb, and lists the first of their failures.
func countText(b *bytes.Buffer, rest scheduler.Operations, limit int) {
	if rest.Len() == 0 {
		return
	}
	counts := map[scheduler.Verb]int{}
	var failed []scheduler.Operation
	for _, op := range rest.All() {
		counts[op.Verb]++
		if op.NewErr != nil {
			failed = append(failed, op)
		}
	}
	fmt.Fprintf(b, "      … and %d more operations:", rest.Len())
	for v := scheduler.Validate; v <= scheduler.Delete; v++ {
		if counts[v] > 0 {
			fmt.Fprintf(b, " %d %s", counts[v], v)
		}
	}
	b.WriteString("\n")
	shown := bounded(len(failed), limit)
	for _, op := range failed[:shown] {
		fmt.Fprintf(b, "      - %s failed: %s\n", printable.Line(op.Key), printable.Line(firstLine(op.NewErr)))
	}
	moreText(b, "      ", len(failed)-shown, "failures")
}

// firstLine returns the first line of an error, within the bound of errors.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return printable.Cut(line, maxErrorText)
}

// errorLine renders an error on one line.
func errorLine(err error) string {
	return printable.Line(strings.ReplaceAll(printable.Cut(err.Error(), maxErrorText), "\n", "; "))
}

// operationText writes one operation with its values, errors and states.
func operationText(b *bytes.Buffer, o *scheduler.Operation, number int) {
	flags := strings.Join(Flags(o), " ")
	if flags != "" {
		flags = " [" + flags + "]"
	}
	fmt.Fprintf(b, "      %d. %s%s:\n          - key: %s\n", number, o.Verb, flags, printable.Line(o.Key))
	switch {
	case o.Verb == scheduler.Update:
		fmt.Fprintf(b, "          - prev-value: %s\n          - new-value: %s\n", value.Line(o.Old), value.Line(o.New))
	case o.Verb == scheduler.Delete:
		fmt.Fprintf(b, "          - value: %s\n", value.Line(o.Old))
	default:
		fmt.Fprintf(b, "          - value: %s\n", value.Line(o.New))
	}
	if o.OldErr != nil {
		fmt.Fprintf(b, "          - prev-error: %s\n", errorLine(o.OldErr))
	}
	if o.NewErr != nil {
		fmt.Fprintf(b, "          - error: %s\n", errorLine(o.NewErr))
	}
	if len(o.Waits) > 0 {
		fmt.Fprintf(b, "          - waits for: %s\n", printable.Line(strings.Join(o.Waits, ", ")))
	}
	fmt.Fprintf(b, "          - prev-state: %s\n          - new-state: %s\n", o.OldState, o.NewState)
}

// bounded returns how many of n items are written; a negative limit means all.
func bounded(n, limit int) int {
	if limit < 0 {
		return n
	}
	return min(n, limit)
}

// moreText says how many items were left out.
func moreText(b *bytes.Buffer, indent string, n int, items string) {
	if n > 0 {
		fmt.Fprintf(b, "%s… and %d more %s\n", indent, n, items)
	}
}
