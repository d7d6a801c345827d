package scheduler

import (
	"unsafe"

	"github.com/keyplane/keyplane/scheduler/internal/size"
)

// size estimates the memory of a kept record in bytes, including its texts and values. A
// value in several records counts in each of them.
func (r *Record) size(types *size.Types) int {
	all := size.Record{Types: types}
	n := int(unsafe.Sizeof(*r)) + len(r.Description)
	n += cap(r.Values) * int(unsafe.Sizeof(Change{}))
	for i := range r.Values {
		c := &r.Values[i]
		n += len(c.Key) + size.Error(c.Err) + all.Message(c.Refused)
		if c.Value != nil {
			n += int(unsafe.Sizeof(*c.Value)) + all.Value(c.Value.v)
		}
	}
	for _, err := range r.RefreshErrors {
		n += size.Error(err)
	}
	own := len(r.Values) == 0 // else a value that was made is one of them, or derived from one
	n += r.Planned.bytes(&all, own) + r.Executed.bytes(&all, own)
	return n
}
