package config

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// history returns the command that prints transactions.
func history(s *session.Session) *cobra.Command {
	var details, earlier bool
	cmd := &cobra.Command{
		Use:   "history [REF|VALUE]",
		Short: "Prints transactions: planned operations and their results",
		Long: "History prints the transactions that the agent remembers, or only the transaction with the number REF.\n" +
			"With VALUE, a key, a name, or a unique part of either, it prints the operations on this value.\n" +
			"With --earlier, it begins with the last transactions before the agent was started, of which it remembers the keys and their outcome,\n" +
			"but no values; their numbers are in parentheses. --details tells who has asked for a transaction.\n" +
			"The format log prints all details, as the agent logs them.",
		Example:           "  agentctl config history\n  agentctl config history 12\n  agentctl config history veth1\n  agentctl config history --earlier --details\n  agentctl config history -f log",
		ValidArgsFunction: names.CompleteValue(s),
		Args:              session.ExpectArgs("[REF|VALUE]"),
	}
	cmd.Flags().BoolVar(&details, "details", false, "print descriptions and errors too")
	cmd.Flags().BoolVar(&earlier, "earlier", false, "print transactions before the last start of the agent, too")
	f := show.FormatFlag(cmd, s, "log")
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		query := url.Values{}
		if earlier && (f.Word() == "log" || len(args) > 0 && isReference(args[0])) {
			return session.Usagef("--earlier is possible neither with REF, since numbers begin anew with each start, nor with the format log")
		}
		if len(args) > 0 {
			if !isReference(args[0]) {
				return historyOf(ctx, s, args[0], earlier, f)
			}
			query.Set("seq-num", args[0])
			details = true
		}
		if f.Word() == "log" {
			return session.Missing(s.CopyText(ctx, http.MethodGet, "/scheduler/txn-history", query, nil))
		}
		records, err := withEarlier(ctx, s, earlier, query)
		if err != nil {
			return err
		}
		return f.Write(s.Out, records, func(out io.Writer) error { return historyTable(out, records, details) })
	})
	return cmd
}

// isReference reports whether an argument is the number of a transaction. Others are values.
func isReference(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

// records queries the history. A query for one number answers an object, others answer an
// array.
func records(ctx context.Context, s *session.Session, query url.Values) ([]wire.Record, error) {
	if !query.Has("seq-num") {
		records := []wire.Record{}
		err := s.Get(ctx, "/scheduler/txn-history", query, &records)
		return records, err
	}
	var one wire.Record
	err := s.Get(ctx, "/scheduler/txn-history", query, &one)
	return []wire.Record{one}, session.Missing(err)
}

// withEarlier is records, which begin with those of earlier runs of the agent if earlier is set.
func withEarlier(ctx context.Context, s *session.Session, earlier bool, query url.Values) (all []wire.Record, err error) {
	if earlier {
		if all, err = records(ctx, s, url.Values{"earlier": {"1"}}); err != nil {
			return nil, err
		}
	}
	now, err := records(ctx, s, query)
	return append(all, now...), err
}

// numberOf returns the number of a transaction. That of an earlier run is in parentheses: numbers begin anew with each.
func numberOf(r wire.Record) string {
	number := strconv.FormatUint(r.SeqNum, 10)
	if r.Earlier {
		return "(" + number + ")"
	}
	return number
}

// historyTable prints one transaction per line. With details it adds the description and the
// errors.
func historyTable(out io.Writer, records []wire.Record, details bool) error {
	columns := []string{"SEQ", "TYPE", "START", "INPUT", "OPERATIONS", "RESULT", "SUMMARY"}
	if details {
		columns = append(columns, "DETAILS")
	}
	t := show.NewTable(out, columns...)
	for _, r := range records {
		errs := failures(r)
		cells := []string{
			numberOf(r), transactionKind(r), show.Short(time.Since(r.Start)),
			countOrNone(len(r.Values), "value"), operations(r), result(errs), summary(r),
		}
		if details {
			if r.Cut > 0 {
				errs = append(errs, fmt.Sprintf("%d further operations are not known any more", r.Cut))
			}
			cells = append(cells, strings.Join(slices.DeleteFunc(append([]string{r.Description}, errs...), func(s string) bool { return s == "" }), "; "))
		}
		t.Row(cells...)
	}
	return t.End()
}

// transactionKind names the trigger of a transaction, in the words of earlier clients:
// scripts compare them.
func transactionKind(r wire.Record) string {
	switch {
	case r.TxnType == "RetryFailedOps":
		return fmt.Sprintf("retry #%d for %d", r.RetryAttempt, r.RetryForTxn)
	case r.TxnType == "RetryUnimplOps":
		return fmt.Sprintf("retry impl for %d", r.RetryForTxn)
	case r.TxnType == "SBNotification":
		return "status update"
	case r.ResyncType == "FullResync":
		return "config replace"
	case r.ResyncType == "UpstreamResync":
		return "config sync"
	case r.ResyncType == "DownstreamResync":
		return "status sync"
	default:
		return "config change"
	}
}

// none is the cell of a count without anything, as in vpp-agent 3.5.
const none = "<none>"

// countOrNone is show.Count, but none for 0.
func countOrNone(n int, noun string) string {
	if n == 0 {
		return none
	}
	return show.Count(n, noun)
}

// operations counts the executed operations by name: "CREATE:2, DELETE:1".
func operations(r wire.Record) string {
	counts := map[string]int{}
	for _, op := range r.Executed {
		counts[op.Operation]++
	}
	return joinCounts(counts)
}

// summary counts the final states of the changed values: "CONFIGURED:2, FAILED:1". A value
// that was changed several times counts once.
func summary(r wire.Record) string {
	last := map[string]string{}
	for _, op := range r.Executed {
		last[op.Key] = op.NewState
	}
	counts := map[string]int{}
	for _, state := range last {
		counts[state]++
	}
	return joinCounts(counts)
}

// joinCounts prints each count, sorted by name, or none.
func joinCounts(counts map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s:%d", name, counts[name]))
	}
	if out == nil {
		return none
	}
	return strings.Join(out, ", ")
}

// failures returns the errors of a transaction. Errors of reverted operations are left out:
// a revert follows from the error that is listed already. A value that failed several times has the
// same error once.
func failures(r wire.Record) (out []string) {
	known := map[string]bool{}
	for _, op := range r.Executed {
		text := op.Key + ": " + show.Remote(op.NewErrMsg)
		if op.NewErrMsg != "" && !op.IsRevert && !known[text] {
			known[text] = true
			out = append(out, text)
		}
	}
	return append(out, r.NotReadBack...)
}

// result summarizes the errors of a transaction in one word.
func result(errs []string) string {
	switch len(errs) {
	case 0:
		return "ok"
	case 1:
		return "error"
	default:
		return show.Count(len(errs), "error")
	}
}
