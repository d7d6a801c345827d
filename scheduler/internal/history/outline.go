package history

import (
	"cmp"
	"iter"
	"slices"
)

// A Noop is a recorded change of a value without a verb.
type Noop struct {
	Key  string
	Base string // key of the base value, or of the value itself
	At   int    // number of operations in the record at that time
}

// An Outline is the record of a transaction whose changes without a verb are still apart from its operations.
type Outline struct {
	Ops       int                // how many there are
	Base, Key func(i int) string // return the key of the base value of operation i, or of the value itself; and its own
	From      int                // the operations before it have another cause than the changes
	Noops     []Noop
	Reverting bool // the operations undo the declared values
}

// Complete yields the numbers of all operations, and ^i for change i without a verb, where it arose: that of a
// declared value among the operations of the declared values, in their order, or after the
// last operation of its own; that of a derived value after the last operation of its base.
// One that was noticed before an operation of the same value began comes before that.
// Changes with another cause come last.
// Their order among each other stays. There are n declared values, in their order; key returns the
// key of one. If several have one key, the last one counts.
func (l Outline) Complete(n int, key func(i int) string) iter.Seq[int] {
	var places []place
	if l.Ops > l.From { // else all of them come last
		declared := make(map[string]int, n)
		for i := range n {
			declared[key(i)] = i
		}
		places = l.places(declared, n)
		slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.before, b.before) })
	} else {
		for i := range l.Noops {
			places = append(places, place{i, l.Ops})
		}
	}
	return func(yield func(int) bool) {
		at := 0
		for _, p := range append(places, place{-1, l.Ops}) {
			for ; at < p.before; at++ {
				if !yield(at) {
					return
				}
			}
			if p.noop >= 0 && !yield(^p.noop) {
				return
			}
		}
	}
}

// A place says before which operation a noop belongs.
type place struct{ noop, before int }

// places returns the place of each noop. later[i] is the first operation of a value that is
// declared after the i-th one.
func (l Outline) places(declared map[string]int, n int) []place {
	last := make(map[string]int, l.Ops) // operation by base
	later := make([]int, n+1)           // not one for each key: a key may be declared several times
	for i := range later {
		later[i] = l.Ops
	}
	for i := l.Ops - 1; i >= l.From; i-- {
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
		out[i] = place{i, l.Ops}
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
func (l Outline) followed() map[int]int {
	noops := map[string][]int{}
	from := l.Ops
	for i := range l.Noops {
		if n := &l.Noops[i]; n.At < l.Ops {
			noops[n.Key] = append(noops[n.Key], i)
			from = min(from, n.At)
		}
	}
	out := map[int]int{}
	for at := from; at < l.Ops && len(noops) > 0; at++ {
		for _, i := range noops[l.Key(at)] {
			if _, known := out[i]; !known && l.Noops[i].At <= at {
				out[i] = at
			}
		}
	}
	return out
}
