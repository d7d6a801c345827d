package scheduler

import (
	"github.com/keyplane/keyplane/scheduler/internal/history"
)

// A noticed is a recorded change of a value without a verb.
type noticed = history.Noticed[Operation]

// insertNoops adds the changes without a verb to the record of r; see history.Outline.
func (r *run) insertNoops() {
	base := func(i int) string {
		if i < len(r.nodes) && r.nodes[i] != nil {
			return r.nodes[i].Root().Key()
		}
		return r.rec.Executed[i].Key
	}
	o := history.Outline[Operation]{Ops: r.rec.Executed, Base: base, Key: keyOfOperation, From: r.begun, Noops: r.noops, Reverting: r.reverting}
	r.rec.Executed, r.noops = o.Complete(len(r.rec.Values), keysOf(r.rec.Values)), nil
}

// keysOf returns the keys of changes, for history.Outline.
func keysOf(changes []Change) func(i int) string { return func(i int) string { return changes[i].Key } }

// A forecast has the operations that a plan expects.
type forecast = history.Forecast[Operation]

// operations returns those of a plan in the order in which the transaction with these values
// would record them.
func operations(f forecast, values []Change) []Operation {
	return f.Complete(keyOfOperation, len(values), keysOf(values))
}

func keyOfOperation(o *Operation) string { return o.Key }
