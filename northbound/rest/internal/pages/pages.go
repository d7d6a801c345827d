// Package pages has the paths that list values and transactions in parts, for programs that show
// them to people: the page of the agent. An answer is small, however many values there are.
//
// Each answer comes from a snapshot, so no transaction waits for it. It costs one pass over all
// values. The parts of a list do not belong to one snapshot: a value that comes or goes moves
// the others. A client that follows GET /events reads its part again then.
package pages

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/records"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/browse"
	"github.com/keyplane/keyplane/scheduler"
)

// Pages serves lists of a scheduler.
type Pages struct {
	Scheduler *scheduler.Scheduler
	// Short removes the agent's own prefix from a key.
	Short func(key string) string
}

// maxLimit is the largest part of a list, and defaultLimit the one without the argument.
const maxLimit, defaultLimit = 1000, 100

// Endpoints returns the paths in the order of the index.
func (p Pages) Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		endpoint.Get("/scheduler/values", endpoint.Dump, "search=, state= (many), sort=key|trouble, why=1, offset=, limit=", "a part of the list of values, with states and, with why, the last causes; sort=trouble: those first that need somebody most", p.values).Answers(browse.ValuePage{}).Costly(),
		endpoint.Get("/scheduler/value", endpoint.Dump, "key=", "one value with its content and its relations", p.value).Answers(browse.ValueDetails{}).Costly(),
		endpoint.Get("/scheduler/transactions", endpoint.Dump, "offset=, limit=", "a part of the list of transactions, the newest first", p.transactions).Answers(browse.TransactionPage{}).Costly(),
		endpoint.Get("/scheduler/operations", endpoint.Dump, "seq-num=, list=executed|planned, offset=, limit=", "a part of the operations of a transaction", p.operations).Answers([]wire.Operation{}).Costly(),
	}
}

// part returns the arguments offset and limit.
func part(q endpoint.Query) (offset, limit int, err error) {
	from, _, err := q.Number("offset")
	if err != nil {
		return 0, 0, reply.BadRequest(err)
	}
	most, given, err := q.Number("limit")
	if err != nil {
		return 0, 0, reply.BadRequest(err)
	}
	if !given {
		most = defaultLimit
	}
	if most < 1 || most > maxLimit {
		return 0, 0, reply.BadRequest(fmt.Errorf("argument limit=%d: expected 1 to %d", most, maxLimit))
	}
	const farthest = 1 << 31 // beyond the end of any list, and an int everywhere
	return int(min(from, farthest-1)), int(most), nil
}

// cut returns the part of a list; empty beyond its end.
func cut[T any](all []T, offset, limit int) []T {
	offset = min(offset, len(all))
	return all[offset:min(offset+limit, len(all))]
}

// transactions answers a part of the history.
func (p Pages) transactions(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	offset, limit, err := part(q)
	if err != nil {
		return err
	}
	all := p.Scheduler.History()
	slices.Reverse(all)
	out := browse.TransactionPage{Total: len(all), Offset: offset, Transactions: []browse.TransactionSummary{}}
	for _, r := range cut(all, offset, limit) {
		out.Transactions = append(out.Transactions, summaryOf(r))
	}
	return reply.JSON(w, out)
}

// summaryOf counts the parts of a transaction.
func summaryOf(r *scheduler.Record) browse.TransactionSummary {
	out := browse.TransactionSummary{
		SeqNum: r.Seq, Start: r.Start, Stop: r.Stop, TxnType: records.TypeName(r.Type), ResyncType: r.Resync(), Description: r.Description,
		RetryForTxn: r.RetryOf, RetryAttempt: r.Attempt,
		Values: len(r.Values), Planned: r.Planned.Len(), Executed: r.Executed.Len(), NotReadBack: len(r.RefreshErrors),
	}
	for _, op := range r.Executed.All() {
		if op.NewErr != nil {
			out.Failed++
		}
	}
	if r.Executed.Len() > 0 {
		out.First = r.Executed.At(0).Key
	}
	return out
}

// operations answers a part of the operations of one transaction. They are written one by one,
// because each may have values of megabytes.
func (p Pages) operations(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	seq, given, err := q.Number("seq-num")
	if err == nil && !given {
		err = errors.New("argument seq-num is missing: expected the number of a transaction")
	}
	if err != nil {
		return reply.BadRequest(err)
	}
	which, err := q.Choice("list", "executed", "planned")
	if err != nil {
		return reply.BadRequest(err)
	}
	offset, limit, err := part(q)
	if err != nil {
		return err
	}
	all := p.Scheduler.History()
	i := slices.IndexFunc(all, func(r *scheduler.Record) bool { return r.Seq == seq })
	if i < 0 {
		return reply.NotFound(fmt.Errorf("the history has no transaction #%d", seq))
	}
	ops := all[i].Executed
	if which == "planned" {
		ops = all[i].Planned
	}
	return reply.Array(w, records.Operations(ops.Part(offset, limit)))
}
