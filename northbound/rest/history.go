package rest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/records"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// history answers one transaction, or those of a period.
func (h *handler) history(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	format, err := q.Choice("format", "json", "text")
	if err != nil {
		return err
	}
	earlier, err := q.Boolean("earlier")
	if err != nil {
		return err
	}
	if earlier {
		return h.pastTransactions(w, format)
	}
	seq, one, err := q.Number("seq-num")
	if err != nil {
		return err
	}
	if one {
		return h.transaction(w, format, seq)
	}
	since, err := q.Moment("since", time.Time{})
	if err != nil {
		return err
	}
	until, err := q.Moment("until", time.Unix(1<<40, 0))
	if err != nil {
		return err
	}
	found := between(h.sched.History(), since, until)
	if format == "text" {
		return reply.Text(w, reply.Mapped(found, fullText))
	}
	return reply.Array(w, reply.Mapped(found, records.Of))
}

// pastTransactions answers the kept transactions of earlier runs of the agent.
func (h *handler) pastTransactions(w http.ResponseWriter, format string) error {
	if format == "text" {
		return reply.BadRequest(errors.New("format=text: transactions of earlier runs have none: expected json"))
	}
	var all []wire.Record
	if h.Past != nil {
		all = h.Past.Earlier()
	}
	return reply.Array(w, slices.Values(all))
}

// transaction answers the transaction with this number.
func (h *handler) transaction(w http.ResponseWriter, format string, seq uint64) error {
	r, err := h.record(seq)
	if err != nil {
		return err
	}
	if format == "text" {
		return reply.Text(w, reply.Mapped([]*scheduler.Record{r}, fullText))
	}
	return reply.One(w, records.Of(r))
}

// record returns the transaction with this number. The history is bounded, so old ones are
// gone. Numbers begin at 0 with each start of the agent, so a number from before a restart
// may name another transaction.
func (h *handler) record(seq uint64) (*scheduler.Record, error) {
	for _, r := range h.sched.History() {
		if r.Seq == seq {
			return r, nil
		}
	}
	return nil, reply.NotFound(fmt.Errorf("the history has no transaction #%d", seq))
}

// between returns the transactions that were executed at some time from since to until. A
// transaction that lasts from before until after the period is in it.
func between(records []*scheduler.Record, since, until time.Time) []*scheduler.Record {
	return slices.DeleteFunc(records, func(r *scheduler.Record) bool {
		return r.Stop.Before(since) || r.Start.After(until)
	})
}

// fullText returns a record as the transaction log shows it, with values of any
// length.
func fullText(r *scheduler.Record) string { return txnlog.Text(r, -1) }

// resync makes the scheduler read back the actual state and repair differences. It
// answers the transaction.
func (h *handler) resync(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
	if _, err := q.Boolean("retry"); err != nil { // accepted for compatibility: failed operations are always retried
		return err
	}
	verbose, err := q.Boolean("verbose")
	if err != nil {
		return err
	}
	record, err := h.sched.Commit(r.Context(), scheduler.Txn{Description: "downstream resync by request", Refresh: true})
	if verbose && record != nil {
		h.logResync(record)
	}
	if err != nil {
		return err
	}
	return reply.One(w, records.Of(record))
}

// logResync logs the errors and repairs of a resync.
func (h *handler) logResync(r *scheduler.Record) {
	for _, err := range r.RefreshErrors {
		h.Log.Info("resync could not read back", "txn", r.Seq, "err", err)
	}
	for o := range records.Operations(r.Executed) {
		h.Log.Info("resync repaired a value", "txn", r.Seq, "operation", o.Operation, "key", o.Key, "state", o.NewState, "err", o.NewErrMsg)
	}
	applied := 0
	for _, st := range h.sched.Statuses("") {
		if st.Actual != nil {
			applied++
		}
	}
	h.Log.Info("resync finished", "txn", r.Seq, "operations", r.Executed.Len(), "applied", applied)
}
