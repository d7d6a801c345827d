// Package records converts transactions and their operations for clients, without secrets. Lists
// are converted while they are written, so that a transaction of many values needs little memory.
package records

import (
	"iter"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// Of converts a transaction. The lists of the result share the values of r, so r must not change.
func Of(r *scheduler.Record) reply.Record {
	head := wire.Record{
		WithSimulation: r.Simulated || r.Planned.Len() > 0, Start: r.Start, Stop: r.Stop, SeqNum: r.Seq,
		TxnType: TypeName(r.Type), ResyncType: r.Resync(), Revert: r.Revert, Description: r.Description,
		RetryForTxn: r.RetryOf, RetryAttempt: r.Attempt,
	}
	return reply.Record{
		Head: head, Values: valuesOf(r), Planned: Operations(r.Planned), Executed: Operations(r.Executed),
		NotReadBack: reply.Mapped(r.RefreshErrors, error.Error),
	}
}

// valuesOf yields the changes that a transaction requested, sorted by key.
func valuesOf(r *scheduler.Record) iter.Seq[wire.KeyValue] {
	sorted := slices.Clone(r.Values)
	slices.SortStableFunc(sorted, func(a, b scheduler.Change) int { return strings.Compare(a.Key, b.Key) })
	origin := wire.FromNB
	if r.Type == scheduler.Notification {
		origin = wire.FromSB
	}
	return reply.Mapped(sorted, func(c scheduler.Change) wire.KeyValue {
		kv := wire.KeyValue{Key: c.Key, Origin: origin}
		switch {
		case c.Refused != nil: // as declared, not the last valid value
			kv.Value = wire.MessageOf(models.Redacted(c.Refused))
		case c.Value != nil:
			kv.Value = wire.MessageOf(models.Redacted(c.Value.Message()))
		}
		return kv
	})
}

// TypeName returns the name of a transaction's type. Clients of existing deployments
// compare these names.
func TypeName(t scheduler.TxnType) string {
	switch t {
	case scheduler.Notification:
		return "SBNotification"
	case scheduler.RetryFailed:
		return "RetryFailedOps"
	default:
		return "NBTransaction"
	}
}

// Operations yields operations in order, each when it is written.
func Operations(ops scheduler.Operations) iter.Seq[wire.Operation] {
	return func(yield func(wire.Operation) bool) {
		for _, o := range ops.All() {
			if !yield(operationOf(o)) {
				return
			}
		}
	}
}

// operationOf converts an operation. State names and error texts are as in
// the transaction log.
func operationOf(o scheduler.Operation) wire.Operation {
	return wire.Operation{
		Operation: o.Verb.String(), Key: o.Key, Base: o.Base,
		NewState: stateName(o.NewState), NewValue: wire.MessageOf(models.Redacted(o.New)), NewErrMsg: reply.ErrorText(o.NewErr),
		PrevState: stateName(o.OldState), PrevValue: wire.MessageOf(models.Redacted(o.Old)), PrevErrMsg: reply.ErrorText(o.OldErr),
		Waits: o.Waits, NOOP: o.Noop, Order: o.Order, IsDerived: o.Derived, IsProperty: o.Property,
		IsRevert: o.Revert, IsRetry: o.Retry, IsRecreate: o.Recreate,
	}
}

// stateName returns the name of a state; it is empty for NONEXISTENT, so that JSON
// omits it.
func stateName(s scheduler.State) string {
	if s == scheduler.Nonexistent {
		return ""
	}
	return s.String()
}
