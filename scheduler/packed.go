package scheduler

import (
	"github.com/keyplane/keyplane/scheduler/internal/columns"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A keptRecord is a record in the history.
type keptRecord struct {
	*Record                                     // without the lists that are packed
	values            []*Value                  // of Values, if these only want values
	planned, executed columns.Shared[Operation] // Planned and Executed
	recent            columns.Recent[Record]    // with its lists again
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
	items := sharing().Items(p.values)
	p.planned, p.executed = sharing().Pack(r.Planned, items), sharing().Pack(r.Executed, items)
	r.Planned, r.Executed = nil, nil
	return p
}

// sharing says how operations repeat values: most of them make one of the values of the record
// actual, so their Key and New are those of that value.
func sharing() columns.Sharing[Operation, *Value] {
	return columns.Sharing[Operation, *Value]{
		Key:   func(o *Operation) string { return o.Key },
		KeyOf: (*Value).Key,
		Strip: func(o *Operation, v *Value) bool {
			if o.New == nil || kind.Message(v.v) != o.New {
				return false
			}
			o.Key, o.New = "", nil
			return true
		},
		Restore: func(o *Operation, v *Value) { o.Key, o.New = v.Key(), kind.Message(v.v) },
	}
}

// unpacked returns the record with its lists. Readers share it: people poll the history.
func (k *keptRecord) unpacked() *Record {
	if k.planned.Len()+k.executed.Len() == 0 {
		return k.Record
	}
	return k.recent.Get(func() *Record {
		r := *k.Record
		for _, v := range k.values {
			r.Values = append(r.Values, Change{Key: v.Key(), Value: v})
		}
		r.Planned, r.Executed = sharing().Unpack(k.planned, k.values), sharing().Unpack(k.executed, k.values)
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
