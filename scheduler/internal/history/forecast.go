package history

import (
	"cmp"
	"slices"
)

// A Forecast is a record of operations that a plan expects. It refers to no node, so it stays
// valid when the graph is rolled back and used by others. The zero value is empty.
type Forecast[O any] struct {
	pieces [][]O          // in pieces, because growing one large list would take long
	bases  map[int]string // the keys of the base values of derived values, by the index of the operation
	count  int
	noops  []Noticed[O]
}

// Add adds an operation; base is the key of the base value of a derived value, else empty.
func (f *Forecast[O]) Add(o O, base string) {
	last := len(f.pieces) - 1
	if last < 0 || len(f.pieces[last]) == cap(f.pieces[last]) {
		f.pieces = append(f.pieces, make([]O, 0, min(1024, 8<<min(len(f.pieces), 7))))
		last++
	}
	f.pieces[last] = append(f.pieces[last], o)
	if base != "" {
		if f.bases == nil {
			f.bases = map[int]string{}
		}
		f.bases[f.count] = base
	}
	f.count++
}

// AddNoop adds a change without a verb.
func (f *Forecast[O]) AddNoop(n Noticed[O]) {
	n.At = f.count
	f.noops = append(f.noops, n)
}

// Complete returns all operations, in the order in which a transaction with n declared values
// would record them; see Outline.Complete. keyOf returns the key of an operation.
func (f Forecast[O]) Complete(keyOf func(*O) string, n int, key func(i int) string) []O {
	ops := slices.Concat(f.pieces...)
	base := func(i int) string { return cmp.Or(f.bases[i], keyOf(&ops[i])) }
	return Outline[O]{Ops: ops, Base: base, Key: keyOf, Noops: f.noops}.Complete(n, key)
}
