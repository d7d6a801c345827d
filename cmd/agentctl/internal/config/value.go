package config

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// historyOf prints the transactions with operations on one value. Formats get whole
// transactions, as without a value; the table has only the operations on the value.
func historyOf(ctx context.Context, s *session.Session, given string, earlier bool, f *show.Format) error {
	key, err := names.ValueOrKey(ctx, s, given)
	if err != nil {
		return err
	}
	all, err := withEarlier(ctx, s, earlier, url.Values{})
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r wire.Record) bool { return !slices.ContainsFunc(r.Executed, isOn(key)) })
	if f.Word() == "log" {
		for _, r := range all {
			query := url.Values{"seq-num": {strconv.FormatUint(r.SeqNum, 10)}}
			if err := s.CopyText(ctx, http.MethodGet, "/scheduler/txn-history", query, nil); err != nil {
				return err
			}
		}
		return nil
	}
	return f.Write(s.Out, all, func(out io.Writer) error { return operationsTable(out, all, key) })
}

// isOn returns a filter for operations on a key.
func isOn(key string) func(wire.Operation) bool {
	return func(op wire.Operation) bool { return op.Key == key }
}

// operationsTable prints one operation on the value per line, the oldest first.
func operationsTable(out io.Writer, all []wire.Record, key string) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(out, "The history has no operation on %s.\n", show.Line(key))
		return err
	}
	t := show.NewTable(out, "SEQ", "TYPE", "START", "OPERATION", "STATE", "ERROR")
	for _, r := range all {
		for _, op := range r.Executed {
			if op.Key == key {
				t.Row(numberOf(r), transactionKind(r), show.Short(time.Since(r.Start))+" ago", op.Operation, show.Transition(op), show.Remote(op.NewErrMsg))
			}
		}
	}
	return t.End()
}
