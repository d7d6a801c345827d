package scheduler

import "github.com/keyplane/keyplane/scheduler/internal/columns"

// A keptRecord is a record in the history.
type keptRecord struct {
	*Record                                     // without the lists that are packed
	values            []*Value                  // of Values, if these only want values
	planned, executed columns.Packed[Operation] // Planned and Executed
	recent            columns.Recent[Record]    // with its lists again
}

// manyOperations is the number from which the lists of a record are packed. Fewer operations take
// little memory.
const manyOperations = 1000

// packed returns k in less memory: a fourth of the memory of a large transaction. Nobody should
// wait for it.
func (k *keptRecord) packed() *keptRecord {
	if len(k.Planned)+len(k.Executed) < manyOperations {
		return k
	}
	r := *k.Record
	p := &keptRecord{Record: &r, planned: columns.Pack(r.Planned), executed: columns.Pack(r.Executed)}
	r.Planned, r.Executed = nil, nil
	if p.values = wantedIn(r.Values); p.values != nil {
		r.Values = nil
	}
	return p
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
		r.Planned, r.Executed = k.planned.Unpack(), k.executed.Unpack()
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
