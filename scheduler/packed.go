package scheduler

import (
	"unsafe"

	"github.com/keyplane/keyplane/scheduler/internal/history"
	"github.com/keyplane/keyplane/scheduler/internal/size"
)

// A keptRecord is a record in the history.
type keptRecord struct {
	*Record                        // without Values, if there are many and they only want values
	values  []*Value               // of Values
	recent  history.Recent[Record] // with Values again
}

// manyValues is the number from which the values of a record are packed. Fewer take little memory.
const manyValues = 1000

// keep returns r as the history keeps it, and about how many bytes that takes.
func keep(r *Record, types *size.Types) (k *keptRecord, bytes int) {
	k, bytes = &keptRecord{Record: r}, r.size(types)
	if len(r.Values) < manyValues {
		return k, bytes
	}
	if k.values = wantedIn(r.Values); k.values != nil {
		bytes -= cap(r.Values)*int(unsafe.Sizeof(Change{})) - len(k.values)*int(unsafe.Sizeof(&Value{}))
		r.Values = nil
	}
	return k, bytes
}

// whole returns the record with its values. Readers share it: people poll the history.
func (k *keptRecord) whole() *Record {
	if k.values == nil {
		return k.Record
	}
	return k.recent.Get(func() *Record {
		r := *k.Record
		for _, v := range k.values {
			r.Values = append(r.Values, Change{Key: v.Key(), Value: v})
		}
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
