package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

const textWidth = 120

// Text renders the record as text, with at most limit values and operations
// (0: none, negative: all).
func (r *Record) Text(limit int) string {
	return r.beginText(limit) + r.endText(limit)
}

// beginText is what is known of a transaction before anything is executed.
func (r *Record) beginText(limit int) string {
	var b strings.Builder
	left := fmt.Sprintf("| #%d - %s", r.Seq, r.Type)
	right := r.info() + " |"
	bar := "+" + strings.Repeat("=", textWidth-2) + "+\n"
	b.WriteString(bar)
	fmt.Fprintf(&b, "%s%*s\n", left, max(textWidth-len(left), len(right)+1), right)
	b.WriteString(bar)
	r.argumentsText(&b, limit)
	if r.Simulated {
		b.WriteString("  * planned operations:\n")
		operationsText(&b, r.Planned, limit)
	}
	return b.String()
}

func operationsText(b *strings.Builder, ops []Operation, limit int) {
	if len(ops) == 0 {
		b.WriteString("      <NONE>\n")
	}
	shown := bounded(len(ops), limit)
	for i, op := range ops[:shown] {
		op.text(b, i+1)
	}
	countText(b, ops[shown:])
}

func (r *Record) info() string {
	if r.Type == RetryFailed {
		return fmt.Sprintf("retrying failed TXN #%d (attempt %d)", r.RetryOf, r.Attempt)
	}
	return r.Resync()
}

func (r *Record) kindText() string {
	kind := map[string]string{"FullResync": ", Full Resync", "UpstreamResync": ", NB Sync", "DownstreamResync": ", SB Sync"}[r.Resync()]
	if r.Type == RetryFailed {
		return fmt.Sprintf("%s (for txn #%d, attempt #%d)", r.Type, r.RetryOf, r.Attempt)
	}
	return r.Type.String() + kind
}

func (r *Record) argumentsText(b *strings.Builder, limit int) {
	fmt.Fprintf(b, "  * transaction arguments:\n      - seqNum: %d\n      - type: %s\n", r.Seq, r.kindText())
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
		fmt.Fprintf(b, "          - key: %s\n            val: %s\n", printable.Line(c.Key), c.text())
	}
	moreText(b, "          ", len(r.Values)-shown, "values")
}

func (c Change) text() string {
	switch {
	case c.Err != nil:
		return "<REFUSED> " + errorLine(c.Err)
	case c.Value == nil:
		return "<NIL>"
	}
	return messageText(c.Value.Message())
}

// stale says that a retry has brought nothing new.
func (r *Record) stale() bool {
	return r.Type == RetryFailed && !slices.ContainsFunc(r.Executed, func(o Operation) bool {
		return o.NewErr == nil || o.OldErr == nil || o.OldErr.Error() != o.NewErr.Error()
	})
}

// staleText is a line about a retry that has brought nothing new.
func (r *Record) staleText() string {
	if len(r.Executed) == 0 {
		return fmt.Sprintf("| #%d - %s (attempt #%d): nothing to be done\n", r.Seq, r.Type, r.Attempt)
	}
	return fmt.Sprintf("| #%d - %s (attempt #%d): %d still failing, one is %s: %s\n",
		r.Seq, r.Type, r.Attempt, len(r.Executed), printable.Line(r.Executed[0].Key), printable.Line(firstLine(r.Executed[0].NewErr)))
}

// endText is what a transaction did.
func (r *Record) endText(limit int) string {
	var b strings.Builder
	bar := strings.Repeat("-", textWidth-2)
	fmt.Fprintf(&b, "o%so\n", bar)
	for _, err := range r.RefreshErrors {
		fmt.Fprintf(&b, "  * not read back: %s\n", errorLine(err))
	}
	b.WriteString("  * executed operations")
	if len(r.Executed) > 0 {
		fmt.Fprintf(&b, " (%s -> %s, dur: %s)", clock(r.Start), clock(r.Stop), r.took())
	}
	b.WriteString(":\n")
	operationsText(&b, r.Executed, limit)
	fmt.Fprintf(&b, "x%sx\n", bar)
	left := fmt.Sprintf("| #%d - %s", r.Seq, r.Type)
	right := fmt.Sprintf("took %s |", r.took())
	fmt.Fprintf(&b, "%s%*s\nx%sx\n", left, max(textWidth-len(left), len(right)+1), right, bar)
	return b.String()
}

func (r *Record) took() time.Duration { return r.Stop.Sub(r.Start).Round(time.Microsecond) }

func clock(t time.Time) string { return t.Format("2006-01-02 15:04:05.000") }

// countText says how many operations of which sort are not shown.
func countText(b *strings.Builder, rest []Operation) {
	if len(rest) == 0 {
		return
	}
	counts := map[Verb]int{}
	for _, op := range rest {
		counts[op.Verb]++
	}
	fmt.Fprintf(b, "      … and %d more operations:", len(rest))
	for v := kvscheduler.TxnOperation_VALIDATE; v <= kvscheduler.TxnOperation_DELETE; v++ {
		if counts[v] > 0 {
			fmt.Fprintf(b, " %d %s", counts[v], v)
		}
	}
	b.WriteString("\n")
	for _, op := range rest {
		if op.NewErr != nil {
			fmt.Fprintf(b, "      - %s failed: %s\n", printable.Line(op.Key), printable.Line(firstLine(op.NewErr)))
		}
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return cut(line, mostErrorText)
}

// errorLine is an error on one line, however many lines it has.
func errorLine(err error) string {
	return printable.Line(strings.ReplaceAll(cut(err.Error(), mostErrorText), "\n", "; "))
}

func (o *Operation) text(b *strings.Builder, number int) {
	flags := strings.Join(o.Flags(), " ")
	if flags != "" {
		flags = " [" + flags + "]"
	}
	fmt.Fprintf(b, "      %d. %s%s:\n          - key: %s\n", number, o.Verb, flags, printable.Line(o.Key))
	switch {
	case o.Verb == kvscheduler.TxnOperation_UPDATE:
		fmt.Fprintf(b, "          - prev-value: %s\n          - new-value: %s\n", messageText(o.Old), messageText(o.New))
	case o.Verb == kvscheduler.TxnOperation_DELETE:
		fmt.Fprintf(b, "          - value: %s\n", messageText(o.Old))
	default:
		fmt.Fprintf(b, "          - value: %s\n", messageText(o.New))
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

// Flags says in words what is special about the operation.
func (o *Operation) Flags() (out []string) {
	add := func(is bool, flag string) {
		if is {
			out = append(out, flag)
		}
	}
	add(o.Derived, "DERIVED")
	add(o.Property, "PROPERTY")
	add(o.Noop, "NOOP")
	add(o.Revert, "REVERT")
	add(o.Retry, "RETRY")
	add(o.Recreate, "RECREATE")
	const (
		obtained      = kvscheduler.ValueState_OBTAINED
		unimplemented = kvscheduler.ValueState_UNIMPLEMENTED
		missing       = kvscheduler.ValueState_MISSING
	)
	was, is := o.OldState, o.NewState
	add(is == obtained, "OBTAINED")
	add(was == obtained && is != obtained, "WAS-OBTAINED")
	add(is == unimplemented, "UNIMPLEMENTED")
	add(was == unimplemented && is != unimplemented, "WAS-UNIMPLEMENTED")
	add(was == missing && is == removed, "ALREADY-MISSING")
	add(was == missing && is != removed, "WAS-MISSING")
	add(was == kvscheduler.ValueState_DISCOVERED, "DISCOVERED")
	add(pending(was) && pending(is), "STILL-PENDING")
	add(pending(was) && !pending(is), "WAS-PENDING")
	add(!pending(was) && pending(is), "IS-PENDING")
	add(failed(was) && failed(is), "STILL-FAILING")
	add(failed(was) && !failed(is), "FIXED")
	add(!failed(was) && failed(is), "FAILED")
	add(invalid(was) && invalid(is), "STILL-INVALID")
	add(invalid(was) && !invalid(is), "FIXED")
	add(!invalid(was) && invalid(is), "INVALID")
	return out
}

func pending(s State) bool { return s == kvscheduler.ValueState_PENDING }
func invalid(s State) bool { return s == kvscheduler.ValueState_INVALID }
func failed(s State) bool {
	return s == kvscheduler.ValueState_FAILED || s == kvscheduler.ValueState_RETRYING
}

func bounded(n, limit int) int {
	if limit < 0 {
		return n
	}
	return min(n, limit)
}

func moreText(b *strings.Builder, indent string, n int, what string) {
	if n > 0 {
		fmt.Fprintf(b, "%s… and %d more %s\n", indent, n, what)
	}
}

// messageText is the message on one line, with stable spacing, and without its secrets.
func messageText(m proto.Message) string {
	if m == nil {
		return "<NIL>"
	}
	text, err := models.Text(models.Redacted(m), false)
	switch {
	case err != nil:
		return "<" + errorLine(err) + ">"
	case len(text) == 0:
		return "<EMPTY>"
	}
	return "{ " + printable.Line(cut(text, mostValueText)) + " }"
}
