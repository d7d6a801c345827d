package history

import (
	"cmp"
	"slices"
)

// A Noticed is a recorded change of a value without a verb.
type Noticed[O any] struct {
	Op   O
	Base string // key of the base value, or of the value itself
	At   int    // number of operations in the record at that time
}

// An Outline is the record of a transaction whose changes without a verb are still apart from its operations.
type Outline[O any] struct {
	Ops       []O
	Base      func(i int) string // returns the key of the base value of Ops[i], or of the value itself
	Key       func(o *O) string
	From      int // the operations before it have another cause than the changes
	Noops     []Noticed[O]
	Reverting bool // the operations undo the declared values
}

// Complete returns all operations, with the changes without a verb where they arose: that of a
// declared value among the operations of the declared values, in their order, or after the
// last operation of its own; that of a derived value after the last operation of its base.
// One that was noticed before an operation of the same value began comes before that.
// Changes with another cause come last.
// Their order among each other stays. There are n declared values, in their order; key returns the
// key of one. If several have one key, the last one counts.
func (l Outline[O]) Complete(n int, key func(i int) string) []O {
	if len(l.Noops) == 0 {
		return l.Ops
	}
	if len(l.Ops) == l.From { // all of them come last
		out := slices.Grow(l.Ops, len(l.Noops))
		for i := range l.Noops {
			out = append(out, l.Noops[i].Op)
		}
		return out
	}
	declared := make(map[string]int, n)
	for i := range n {
		declared[key(i)] = i
	}
	places := l.places(declared, n)
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.before, b.before) })
	out := make([]O, 0, len(l.Ops)+len(places))
	at := 0
	for _, p := range places {
		out = append(out, l.Ops[at:p.before]...)
		out = append(out, l.Noops[p.noop].Op)
		at = p.before
	}
	return append(out, l.Ops[at:]...)
}

// A place says before which operation a noop belongs.
type place struct{ noop, before int }

// places returns the place of each noop. later[i] is the first operation of a value that is
// declared after the i-th one.
func (l Outline[O]) places(declared map[string]int, n int) []place {
	last := make(map[string]int, len(l.Ops)) // operation by base
	later := make([]int, n+1)                // not one for each key: a key may be declared several times
	for i := range later {
		later[i] = len(l.Ops)
	}
	for i := len(l.Ops) - 1; i >= l.From; i-- {
		base := l.Base(i)
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
	followed := l.followed()
	out := make([]place, len(l.Noops))
	for i := range l.Noops {
		out[i] = place{i, len(l.Ops)}
		base := l.Noops[i].Base
		at, is := declared[base]
		after, done := last[base]
		next, again := followed[i]
		switch {
		case again:
			out[i].before = next
		case done:
			out[i].before = after + 1
		case is && !l.Reverting:
			out[i].before = later[at]
		}
	}
	return out
}

// followed returns the operation of the same value that began after each noop that has one. Few records have any: those of
// transactions that have waited while others ran.
func (l Outline[O]) followed() map[int]int {
	noops := map[string][]int{}
	from := len(l.Ops)
	for i := range l.Noops {
		if n := &l.Noops[i]; n.At < len(l.Ops) {
			noops[l.Key(&n.Op)] = append(noops[l.Key(&n.Op)], i)
			from = min(from, n.At)
		}
	}
	out := map[int]int{}
	for at := from; at < len(l.Ops) && len(noops) > 0; at++ {
		for _, i := range noops[l.Key(&l.Ops[at])] {
			if _, known := out[i]; !known && l.Noops[i].At <= at {
				out[i] = at
			}
		}
	}
	return out
}
