package scheduler

import (
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/outline"
)

// A noticed is a recorded change of a value without a verb.
type noticed = outline.Noticed[Operation]

// insertNoops adds the changes without a verb to the record of r; see package outline.
func (r *run) insertNoops() {
	base := func(i int) string {
		if i < len(r.nodes) && r.nodes[i] != nil {
			return baseOf(r.nodes[i]).Key()
		}
		return r.rec.Executed[i].Key
	}
	o := outline.Outline[Operation]{Ops: r.rec.Executed, Base: base, From: r.begun, Noops: r.noops, Reverting: r.reverting}
	r.rec.Executed, r.noops = complete(o, r.rec.Values), nil
}

// complete returns all operations of a record with these values.
func complete(o outline.Outline[Operation], values []Change) []Operation {
	return o.Complete(len(values), func(i int) string { return values[i].Key })
}

// baseOf returns the value that n is derived from in the end, or n.
func baseOf(n *graph.Node) *graph.Node {
	for n.Base() != nil {
		n = n.Base()
	}
	return n
}
