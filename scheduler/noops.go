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

// insertNoops adds the changes without a verb to the record of r; see placeNoops.
func (r *run) insertNoops() {
	base := func(i int) string {
		if i < len(r.nodes) && r.nodes[i] != nil {
			return baseOf(r.nodes[i]).Key()
		}
		return r.rec.Executed[i].Key
	}
	o := outline{ops: r.rec.Executed, base: base, from: r.begun, noops: r.noops, reverting: r.reverting}
	r.rec.Executed, r.noops = o.complete(r.rec.Values), nil
}

// An outline is a record whose changes without a verb are still apart from its operations.
type outline struct {
	ops       []Operation
	base      func(i int) string // returns the key of the base value of ops[i], or of the value itself
	from      int                // the operations before it have another cause than the changes
	noops     []noticed
	reverting bool // the operations undo the declared values
}

// complete returns all operations, with the changes without a verb where they arose: that of a
// declared value among the operations of the declared values, in their order, or after the
// last operation of its own; that of a derived value after the last operation of its base.
// Changes with another cause come last.
// Their order among each other stays.
func (l outline) complete(values []Change) []Operation {
	if len(l.noops) == 0 {
		return l.ops
	}
	declared := make(map[string]int, len(values))
	for i, c := range values {
		declared[c.Key] = i
	}
	places := l.places(declared, len(values))
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.before, b.before) })
	out := make([]Operation, 0, len(l.ops)+len(places))
	at := 0
	for _, p := range places {
		out = append(out, l.ops[at:p.before]...)
		out = append(out, p.noop)
		at = p.before
	}
	return append(out, l.ops[at:]...)
}

// A place says before which operation a noop belongs.
type place struct {
	noop   Operation
	before int
}

// places returns the place of each noop. later[i] is the first operation of a value that is
// declared after the i-th one.
func (l outline) places(declared map[string]int, values int) []place {
	last := make(map[string]int, len(l.ops)) // operation by base
	later := make([]int, values+1)           // not one for each key: a key may be declared several times
	for i := range later {
		later[i] = len(l.ops)
	}
	for i := len(l.ops) - 1; i >= l.from; i-- {
		base := l.base(i)
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
	out := make([]place, len(l.noops))
	for i, n := range l.noops {
		out[i] = place{n.op, len(l.ops)}
		at, is := declared[n.base]
		after, done := last[n.base]
		switch {
		case done:
			out[i].before = after + 1
		case is && !l.reverting:
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
