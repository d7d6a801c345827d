package scheduler

import (
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// size estimates the memory of a kept record in bytes, including its texts and values. A
// value in several records counts in each of them.
func (r *Record) size() int {
	seen := measured{}
	n := int(unsafe.Sizeof(*r)) + len(r.Description)
	n += cap(r.Values) * int(unsafe.Sizeof(Change{}))
	for i := range r.Values {
		c := &r.Values[i]
		n += len(c.Key) + sizeOfError(c.Err) + seen.message(c.Refused)
		if c.Value != nil {
			n += int(unsafe.Sizeof(*c.Value)) + seen.value(c.Value.v)
		}
	}
	for _, err := range r.RefreshErrors {
		n += sizeOfError(err)
	}
	return n + seen.operations(r.Planned) + seen.operations(r.Executed)
}

// measured has the messages that were counted.
type measured map[proto.Message]struct{}

func (seen measured) operations(ops []Operation) int {
	n := cap(ops) * int(unsafe.Sizeof(Operation{}))
	for i := range ops {
		o := &ops[i]
		n += len(o.Key) + sizeOfError(o.OldErr) + sizeOfError(o.NewErr) + sizeOfTexts(o.Waits) +
			seen.message(o.Old) + seen.message(o.New)
	}
	return n
}

// value counts a value with its derived values.
func (seen measured) value(v *graph.Value) int {
	n := int(unsafe.Sizeof(*v)) + len(v.Key) + sizeOfError(v.Err) + seen.message(kind.Message(v))
	if v.Declared != nil {
		n += int(unsafe.Sizeof(*v.Declared)) + sizeOfTexts(v.Declared.Warnings) + seen.message(kind.Declared(v))
	}
	n += cap(v.Deps) * int(unsafe.Sizeof(graph.Dep{}))
	for _, d := range v.Deps {
		n += len(d.Label) + len(d.Key) + sizeOfTexts(d.Prefixes)
	}
	for _, d := range v.Derived {
		n += int(unsafe.Sizeof(d)) + seen.value(d)
	}
	return n
}

// message counts a message once.
func (seen measured) message(m proto.Message) int {
	if m == nil {
		return 0
	}
	if _, twice := seen[m]; twice {
		return 0
	}
	seen[m] = struct{}{}
	return sizeOfMessage(m.ProtoReflect())
}

// sizeOfMessage counts the struct of a message and all memory that it references.
func sizeOfMessage(m protoreflect.Message) int {
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

// sizeOfField counts the memory of a field outside its struct.
func sizeOfField(fd protoreflect.FieldDescriptor, v protoreflect.Value) int {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return sizeOfMessage(v.Message())
	case protoreflect.StringKind:
		return len(v.String())
	case protoreflect.BytesKind:
		return len(v.Bytes())
	default:
		return 0
	}
}

func sizeOfError(err error) int {
	if err == nil {
		return 0
	}
	return int(unsafe.Sizeof("")) + len(err.Error())
}

func sizeOfTexts(texts []string) int {
	n := cap(texts) * int(unsafe.Sizeof(""))
	for _, t := range texts {
		n += len(t)
	}
	return n
}
