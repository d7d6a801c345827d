package scheduler

import (
	"cmp"

	"github.com/keyplane/keyplane/scheduler/internal/history"
	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// noops are changes without a verb that are still apart from the operations of their record.
type noops struct {
	Operations
	places []history.Noop
}

// add adds a change of a value with this base, before operation number at.
func (n *noops) add(o *Operation, base string, at int) {
	n.Operations.add(o)
	n.places = append(queue.Doubled(n.places), history.Noop{Key: o.Key, Base: base, At: at})
}

// insert returns all operations, each change where it arose; see history.Outline. values are those of the record.
func (n *noops) insert(ops *Operations, o history.Outline, values []Change) Operations {
	if n.Len() == 0 {
		return *ops
	}
	o.Ops, o.Noops = ops.Len(), n.places
	o.Key = func(i int) string { return ops.keyAt(i) }
	var out Operations
	out.grow(ops.Len() + n.Len())
	for i := range o.Complete(len(values), func(i int) string { return values[i].Key }) {
		var one Operation
		if i >= 0 {
			one = ops.At(i)
		} else {
			one = n.At(^i)
		}
		out.add(&one)
	}
	return out
}

// insertNoops adds the changes without a verb to the record of r.
func (s *Scheduler) insertNoops(r *run) {
	ops := &r.rec.Executed
	base := func(i int) string {
		key := ops.keyAt(i)
		if n := s.graph.Node(key); n != nil {
			return n.Root().Key()
		}
		return key
	}
	r.rec.Executed = r.noops.insert(ops, history.Outline{Base: base, From: r.begun, Reverting: r.reverting}, r.rec.Values)
	r.noops = noops{}
}

// A forecast has the operations that a plan expects. It refers to no node, so it stays valid when the graph is rolled back and
// used by others.
type forecast struct {
	ops   Operations
	noops noops
}

// operations returns those of a plan in the order in which the transaction with these values
// would record them.
func (f *forecast) operations(values []Change) Operations {
	base := func(i int) string { return cmp.Or(f.ops.base.At(i), f.ops.keyAt(i)) }
	return f.noops.insert(&f.ops, history.Outline{Base: base}, values)
}
