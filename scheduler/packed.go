package scheduler

import (
	"sync"

	"github.com/keyplane/keyplane/scheduler/internal/columns"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A keptRecord is a record in the history.
type keptRecord struct {
	*Record                                  // without the lists that are packed
	values            []*Value               // of Values, if these only want values
	planned, executed packedOperations       // Planned and Executed
	recent            columns.Recent[Record] // with its lists again
}

// packedOperations are operations in little memory. Most of them make one of the values of the
// record actual, so their Key and New are those of that value.
type packedOperations struct {
	made []int32 // by operation: the index of the value plus 1; 0: none
	rest columns.Packed[Operation]
}

// manyOperations is the number from which the lists of a record are packed. Fewer operations take
// little memory.
const manyOperations = 1000

// packed returns k in less memory: an eighth of the memory of a large transaction. Nobody should
// wait for it.
func (k *keptRecord) packed() *keptRecord {
	if len(k.Planned)+len(k.Executed) < manyOperations {
		return k
	}
	r := *k.Record
	p := &keptRecord{Record: &r, values: wantedIn(r.Values)}
	if p.values != nil {
		r.Values = nil
	}
	indexes := sync.OnceValue(func() map[string]int32 { return indexesOf(p.values) })
	p.planned, p.executed = pack(r.Planned, p.values, indexes), pack(r.Executed, p.values, indexes)
	r.Planned, r.Executed = nil, nil
	return p
}

// pack packs operations. indexes returns the indexes of the values by key. It is not needed where the
// operations have the order of the values.
func pack(ops []Operation, values []*Value, indexes func() map[string]int32) packedOperations {
	p := packedOperations{made: make([]int32, len(ops))}
	next := 0
	p.rest = columns.Pack(len(ops), func(i int) Operation {
		o := ops[i]
		if o.New == nil || len(values) == 0 {
			return o
		}
		if next == len(values) || values[next].Key() != o.Key {
			at, known := indexes()[o.Key]
			if !known {
				return o
			}
			next = int(at)
		}
		if kind.Message(values[next].v) == o.New {
			p.made[i], o.Key, o.New = int32(next+1), "", nil
		}
		next++
		return o
	})
	return p
}

// unpack returns the operations.
func (p *packedOperations) unpack(values []*Value) []Operation {
	all := p.rest.Unpack()
	for i := range all {
		if at := p.made[i]; at > 0 {
			v := values[at-1]
			all[i].Key, all[i].New = v.Key(), kind.Message(v.v)
		}
	}
	return all
}

// unpacked returns the record with its lists. Readers share it: people poll the history.
func (k *keptRecord) unpacked() *Record {
	if k.planned.rest.Len()+k.executed.rest.Len() == 0 {
		return k.Record
	}
	return k.recent.Get(func() *Record {
		r := *k.Record
		for _, v := range k.values {
			r.Values = append(r.Values, Change{Key: v.Key(), Value: v})
		}
		r.Planned, r.Executed = k.planned.unpack(k.values), k.executed.unpack(k.values)
		return &r
	})
}

// wantedIn returns the values of changes; nil if a change is more than that.
func wantedIn(changes []Change) []*Value {
	out := make([]*Value, len(changes))
	for i, c := range changes {
		if out[i] = c.Value; c.Value == nil || c.Err != nil || c.Key != c.Value.Key() {
			return nil
		}
	}
	return out
}

// indexesOf returns the index of each value by its key. A key may have several values.
func indexesOf(values []*Value) map[string]int32 {
	out := make(map[string]int32, len(values))
	for i, v := range values {
		out[v.Key()] = int32(i)
	}
	return out
}
