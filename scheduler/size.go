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
	for _, ops := range [][]Operation{r.Planned, r.Executed} {
		n += cap(ops) * int(unsafe.Sizeof(Operation{})) // a record keeps all of the slice
		for i := range ops {
			o := &ops[i]
			n += size.Error(o.OldErr) + size.Error(o.NewErr) + size.Texts(o.Waits) + all.Message(o.Old)
			switch {
			case !o.makesValue():
				n += len(o.Key) + all.Message(o.New)
			case len(r.Values) == 0: // else it is one of them, or derived from one
				n += all.Value(o.of)
			}
		}
	}
	return n
}
