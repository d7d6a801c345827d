// Package size estimates the memory of values in bytes. The estimates bound the history; they
// need not be exact, but must grow with the values.
//
// A record of a transaction refers to the values that it changed. These may be the same
// messages in many records, or may be kept by nothing else: nobody can know cheaply. So
// each record counts its values in full. Only large messages that occur twice within one
// record count once; to remember small ones would cost more than they have.
//
// An estimate that is too large costs history; one that is too small costs memory without
// a bound.
package size

import (
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// Value returns the memory of a value with its derived values. A value whose Size is known is
// not counted again.
func (t *Types) Value(v *graph.Value) int {
	if v.Size != 0 {
		return int(v.Size)
	}
	n := int(unsafe.Sizeof(*v)) + v.Bytes() + len(v.Key) + Error(v.Err()) + t.data(v.Data)
	if d := v.Declared(); d != nil {
		n += int(unsafe.Sizeof(*d)) + Texts(d.Warnings) + t.data(d.Data)
	}
	n += cap(v.Deps) * int(unsafe.Sizeof(value.Dep{}))
	for i := range v.Deps {
		d := &v.Deps[i]
		n += len(d.Label) + len(d.Key)
		if a := d.Any; a != nil {
			n += int(unsafe.Sizeof(*a)) + Texts(a.Keys) + Texts(a.Prefixes)
		}
	}
	for _, d := range v.Derived() {
		n += t.Value(d)
	}
	return n
}

// data returns the memory of the data of a value, which is a message or nothing.
func (t *Types) data(data any) int {
	m, _ := data.(proto.Message)
	return t.Message(m)
}

// large is the size in bytes above which a record remembers a message.
const large = 1 << 10

// A Record counts the memory of one record. The zero value with Types is ready.
type Record struct {
	Types *Types
	seen  map[proto.Message]struct{} // large messages that were counted
}

// Value returns the memory of a value with its derived values.
func (r *Record) Value(v *graph.Value) int {
	n := r.Types.Value(v)
	if n > large {
		r.remember(v)
	}
	return n
}

// remember notes the messages of a large value and of its large derived values.
func (r *Record) remember(v *graph.Value) {
	if m, is := v.Data.(proto.Message); is {
		r.add(m)
	}
	for _, d := range v.Derived() {
		if d.Size > large {
			r.remember(d)
		}
	}
}

// Message returns the memory of a message, or 0 if it is a large one that was counted before.
func (r *Record) Message(m proto.Message) int {
	if m == nil {
		return 0
	}
	if len(r.seen) > 0 {
		if _, twice := r.seen[m]; twice {
			return 0
		}
	}
	n := r.Types.Message(m)
	if n > large {
		r.add(m)
	}
	return n
}

// add notes a message that was counted.
func (r *Record) add(m proto.Message) {
	if r.seen == nil {
		r.seen = map[proto.Message]struct{}{}
	}
	r.seen[m] = struct{}{}
}

// reflected counts the struct of a message and all memory that it references. It asks for each
// field by its accessor, which works for all messages and takes long.
func reflected(m protoreflect.Message) int {
	n := len(m.GetUnknown())
	if t := reflect.TypeOf(m.Interface()); t.Kind() == reflect.Pointer {
		n += int(t.Elem().Size())
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			const entry = 48 // two words each for key and value, and spare capacity
			n += v.Map().Len() * entry
			v.Map().Range(func(k protoreflect.MapKey, one protoreflect.Value) bool {
				n += sizeOfField(fd.MapKey(), k.Value()) + sizeOfField(fd.MapValue(), one)
				return true
			})
		case fd.IsList():
			const element = 16 // a string header; twice the size of a number, because lists have spare capacity
			n += v.List().Len() * element
			for i := range v.List().Len() {
				n += sizeOfField(fd, v.List().Get(i))
			}
		default:
			n += sizeOfField(fd, v)
		}
		return true
	})
	return n
}

// sizeOfField counts the memory of a field outside its struct. Numbers and booleans are
// part of the struct.
func sizeOfField(fd protoreflect.FieldDescriptor, v protoreflect.Value) int {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return reflected(v.Message())
	case protoreflect.StringKind:
		return len(v.String())
	case protoreflect.BytesKind:
		return len(v.Bytes())
	default:
		return 0
	}
}

// Error returns the memory of the text of an error. An error type may refer to any memory,
// so records keep the text only.
func Error(err error) int {
	if err == nil {
		return 0
	}
	return int(unsafe.Sizeof("")) + len(err.Error())
}

// Texts returns the memory of texts. It includes the spare capacity of the slice, which a
// record keeps too.
func Texts(texts []string) int {
	n := cap(texts) * int(unsafe.Sizeof(""))
	for _, t := range texts {
		n += len(t)
	}
	return n
}
