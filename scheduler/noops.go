package scheduler

import (
	"cmp"
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A noticed is a recorded change of a value without a verb, and its place in the record.
type noticed struct {
	op   Operation
	base string // key of the base value, or of the value itself
}

// insertNoops adds the changes without a verb to the record of r, where they arose: that of a
// declared value among the operations of the declared values, in their order, or after the
// last operation of its own; that of a derived value after the last operation of its base.
// Changes with another cause come last.
// Their order among each other stays.
func (r *run) insertNoops() {
	if len(r.noops) == 0 {
		return
	}
	ops := r.rec.Executed
	declared := make(map[string]int, len(r.rec.Values))
	for i, c := range r.rec.Values {
		declared[c.Key] = i
	}
	places := r.places(declared)
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.before, b.before) })
	out := make([]Operation, 0, len(ops)+len(places))
	at := 0
	for _, p := range places {
		out = append(out, ops[at:p.before]...)
		out = append(out, p.noop)
		at = p.before
	}
	out = append(out, ops[at:]...)
	r.rec.Executed, r.noops = out, nil
}

// A place says before which operation a noop belongs.
type place struct {
	noop   Operation
	before int
}

// places returns the place of each noop. later[i] is the first operation of a value that is
// declared after the i-th one.
func (r *run) places(declared map[string]int) []place {
	ops := r.rec.Executed
	last := make(map[string]int, len(ops)) // operation by base
	later := make([]int, len(declared)+1)
	for i := range later {
		later[i] = len(ops)
	}
	for i := len(ops) - 1; i >= r.begun; i-- {
		base := ops[i].Key
		if i < len(r.nodes) && r.nodes[i] != nil {
			base = baseOf(r.nodes[i]).Key()
		}
		if _, known := last[base]; !known {
			last[base] = i
		}
		if at, is := declared[base]; is {
			later[at] = i
		}
	}
	for i := len(later) - 2; i >= 0; i-- {
		later[i] = min(later[i], later[i+1])
	}
	out := make([]place, len(r.noops))
	for i, n := range r.noops {
		out[i] = place{n.op, len(ops)}
		at, is := declared[n.base]
		after, done := last[n.base]
		switch {
		case done:
			out[i].before = after + 1
		case is && !r.reverting:
			out[i].before = later[at]
		}
	}
	return out
}

// baseOf returns the value that n is derived from in the end, or n.
func baseOf(n *graph.Node) *graph.Node {
	for n.Base() != nil {
		n = n.Base()
	}
	return n
}
