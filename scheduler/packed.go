package scheduler

import (
	"unsafe"

	"github.com/keyplane/keyplane/scheduler/internal/history"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/size"
)

// A keptRecord is a record in the history.
type keptRecord struct {
	*Record                                     // without the lists that are packed
	bytes             int                       // about the memory of all
	values            []*Value                  // of Values, if these only want values
	planned, executed history.Shared[Operation] // Planned and Executed
	recent            history.Recent[Record]    // with its lists again
}

// manyOperations is the number from which the lists of a record are packed. Fewer operations take
// little memory.
const manyOperations = 1000

// isLarge reports whether packing k is of use.
func (k *keptRecord) isLarge() bool { return len(k.Planned)+len(k.Executed) >= manyOperations }

// packed returns k in less memory, and the number of its bytes: an eighth for a large transaction. A million
// operations take a second.
func (k *keptRecord) packed(types *size.Types) (packed *keptRecord, bytes int) {
	r := *k.Record
	p := &keptRecord{Record: &r, bytes: k.bytes, values: wantedIn(r.Values)}
	if p.values != nil {
		p.bytes -= cap(r.Values)*int(unsafe.Sizeof(Change{})) - len(p.values)*int(unsafe.Sizeof(&Value{}))
		r.Values = nil
	}
	repeated := func(o *Operation) { p.bytes -= len(o.Key) + types.Message(o.New) }
	items := sharing(nil).Items(p.values)
	p.planned, p.executed = sharing(repeated).Pack(r.Planned, items), sharing(repeated).Pack(r.Executed, items)
	p.bytes += p.planned.Bytes() + p.executed.Bytes() - (cap(r.Planned)+cap(r.Executed))*int(unsafe.Sizeof(Operation{}))
	r.Planned, r.Executed = nil, nil
	return p, p.bytes
}

// sharing says how operations repeat values: most of them make one of the values of the record
// actual, so their Key and New are those of that value. It calls repeated before it
// removes them.
func sharing(repeated func(*Operation)) history.Sharing[Operation, *Value] {
	return history.Sharing[Operation, *Value]{
		Key:   func(o *Operation) string { return o.Key },
		KeyOf: (*Value).Key,
		Strip: func(o *Operation, v *Value) bool {
			if o.New == nil || kind.Message(v.v) != o.New {
				return false
			}
			repeated(o)
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
		r.Planned = sharing(nil).Unpack(k.planned, k.values, k.planned.Len())
		r.Executed = sharing(nil).Unpack(k.executed, k.values, k.executed.Len())
		return &r
	})
}

// head returns the record with its first operations, at most so many if it is packed, and the number of all.
func (k *keptRecord) head(most int) (*Record, int) {
	if k.executed.Len() == 0 {
		return k.Record, len(k.Executed)
	}
	r := *k.Record
	r.Executed = sharing(nil).Unpack(k.executed, k.values, most)
	return &r, k.executed.Len()
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
