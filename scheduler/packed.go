package scheduler

import (
	"unsafe"

	"github.com/keyplane/keyplane/scheduler/internal/history"
)

// A keptRecord is a record in the history.
type keptRecord struct {
	*Record                                  // without the lists that are packed
	bytes             int                    // about the memory of all
	values            []*Value               // of Values, if these only want values
	planned, executed packedOperations       // Planned and Executed
	recent            history.Recent[Record] // with its lists again
}

// manyOperations is the number from which the lists of a record are packed. Fewer operations take
// little memory.
const manyOperations = 1000

// isLarge reports whether packing k is of use.
func (k *keptRecord) isLarge() bool { return len(k.Planned)+len(k.Executed) >= manyOperations }

// packed returns k in less memory, and the number of its bytes: an eighth for a large transaction.
func (k *keptRecord) packed() (packed *keptRecord, bytes int) {
	r := *k.Record
	p := &keptRecord{Record: &r, bytes: k.bytes, values: wantedIn(r.Values)}
	if p.values != nil {
		p.bytes -= cap(r.Values)*int(unsafe.Sizeof(Change{})) - len(p.values)*int(unsafe.Sizeof(&Value{}))
		r.Values = nil
	}
	p.planned, p.executed = pack(r.Planned), pack(r.Executed)
	p.bytes += p.planned.bytes() + p.executed.bytes() - (cap(r.Planned)+cap(r.Executed))*int(unsafe.Sizeof(Operation{}))
	r.Planned, r.Executed = nil, nil
	return p, p.bytes
}

// unpacked returns the record with its lists. Readers share it: people poll the history.
func (k *keptRecord) unpacked() *Record {
	if k.planned.n+k.executed.n == 0 {
		return k.Record
	}
	return k.recent.Get(func() *Record {
		r := *k.Record
		for _, v := range k.values {
			r.Values = append(r.Values, Change{Key: v.Key(), Value: v})
		}
		r.Planned, r.Executed = k.planned.unpack(k.planned.n), k.executed.unpack(k.executed.n)
		return &r
	})
}

// head returns the record with its first operations, at most so many if it is packed, and the number of all.
func (k *keptRecord) head(most int) (*Record, int) {
	if k.executed.n == 0 {
		return k.Record, len(k.Executed)
	}
	r := *k.Record
	r.Executed = k.executed.unpack(most)
	return &r, k.executed.n
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
