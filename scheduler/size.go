package scheduler

import (
	"unsafe"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/size"
)

// size estimates the memory of a kept record in bytes, including its texts and values. A
// value in several records counts in each of them.
func (r *Record) size() int {
	seen := size.Seen{}
	n := int(unsafe.Sizeof(*r)) + len(r.Description)
	n += cap(r.Values) * int(unsafe.Sizeof(Change{}))
	for i := range r.Values {
		c := &r.Values[i]
		n += len(c.Key) + size.Error(c.Err) + seen.Message(c.Refused)
		if c.Value != nil {
			n += int(unsafe.Sizeof(*c.Value)) + sizeOfValue(seen, c.Value.v)
		}
	}
	for _, err := range r.RefreshErrors {
		n += size.Error(err)
	}
	return n + sizeOfOperations(seen, r.Planned) + sizeOfOperations(seen, r.Executed)
}

// sizeOfOperations counts operations with their texts and values. The length of a slice
// matters less than its capacity, because a record keeps all of it.
func sizeOfOperations(seen size.Seen, ops []Operation) int {
	n := cap(ops) * int(unsafe.Sizeof(Operation{}))
	for i := range ops {
		o := &ops[i]
		n += len(o.Key) + size.Error(o.OldErr) + size.Error(o.NewErr) + size.Texts(o.Waits) +
			seen.Message(o.Old) + seen.Message(o.New)
	}
	return n
}

// value counts a value with its derived values.
func sizeOfValue(seen size.Seen, v *graph.Value) int {
	n := int(unsafe.Sizeof(*v)) + len(v.Key) + size.Error(v.Err) + seen.Message(kind.Message(v))
	if v.Declared != nil {
		n += int(unsafe.Sizeof(*v.Declared)) + size.Texts(v.Declared.Warnings) + seen.Message(kind.Declared(v))
	}
	n += cap(v.Deps) * int(unsafe.Sizeof(graph.Dep{}))
	for _, d := range v.Deps {
		n += len(d.Label) + len(d.Key)
		if a := d.Any; a != nil {
			n += int(unsafe.Sizeof(*a)) + size.Texts(a.Keys) + size.Texts(a.Prefixes)
		}
	}
	for _, d := range v.Derived {
		n += int(unsafe.Sizeof(d)) + sizeOfValue(seen, d)
	}
	return n
}
