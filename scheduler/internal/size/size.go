// Package size estimates the memory of values in bytes. The estimates bound the history; they
// need not be exact, but must grow with the values.
//
// A record of a transaction refers to the values that it changed. These may be the same
// messages in many records, or may be kept by nothing else: nobody can know cheaply. So
// each record counts its values in full, and only values that occur twice within one
// record count once.
//
// An estimate that is too large costs history; one that is too small costs memory without
// a bound.
package size

import (
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Seen has the messages that were counted. Use make; one goroutine uses it.
type Seen map[proto.Message]struct{}

// Message returns the memory of a message, or 0 if it was counted before.
func (seen Seen) Message(m proto.Message) int {
	if m == nil {
		return 0
	}
	if _, twice := seen[m]; twice {
		return 0
	}
	seen[m] = struct{}{}
	return sizeOf(m.ProtoReflect())
}

// sizeOf counts the struct of a message and all memory that it references.
func sizeOf(m protoreflect.Message) int {
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
		return sizeOf(v.Message())
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
