package size

import (
	"reflect"
	"sync"
	"unsafe"

	"google.golang.org/protobuf/proto"
)

// Types knows how the types of messages lie in memory. It examines each type once, so that
// counting a message only follows its references. The zero value is ready. Any goroutine may
// use it.
type Types struct {
	plans sync.Map // reflect.Type to *plan
}

// A plan says what a Go type refers to. Numbers and booleans have none: they refer to nothing.
type plan struct {
	kind   planKind
	self   reflect.Type
	item   int     // bytes of one item that it refers to
	of     *plan   // of an item; nil: it refers to nothing
	key    *plan   // of a key; nil: likewise
	fields []field // that refer to something
}

// A field is a field of a struct.
type field struct {
	offset uintptr
	of     *plan
}

// A planKind is a way to refer to memory.
type planKind uint8

const (
	text    planKind = iota // a string
	pointer                 // to an item
	list                    // of items
	table                   // a map of items
	record                  // a struct: its fields
	union                   // an interface, as oneof has it: the type is known from the value
	opaque                  // a message whose Go fields nobody may read
)

// Message returns the memory of a message in bytes; 0: it is nil.
func (t *Types) Message(m proto.Message) int {
	if m == nil {
		return 0
	}
	v := reflect.ValueOf(m)
	p := t.planOf(v.Type())
	if p.kind != pointer {
		return reflected(m.ProtoReflect())
	}
	return t.behind(p, v.UnsafePointer())
}

// outside returns the memory that the variable at the address refers to. Each address has the
// type of its plan.
func (t *Types) outside(p *plan, at unsafe.Pointer) int {
	switch p.kind {
	case text:
		return len(*(*string)(at))
	case pointer:
		return t.behind(p, *(*unsafe.Pointer)(at))
	case list:
		return t.items(p, *(*[]byte)(at)) // the header of all slices is the same
	case record:
		n := 0
		for i := range p.fields {
			n += t.outside(p.fields[i].of, unsafe.Add(at, p.fields[i].offset))
		}
		return n
	default:
		return t.rare(p, reflect.NewAt(p.self, at).Elem())
	}
}

// behind returns the memory of an item and all that it refers to.
func (t *Types) behind(p *plan, item unsafe.Pointer) int {
	switch {
	case item == nil:
		return 0
	case p.of == nil:
		return p.item
	}
	return p.item + t.outside(p.of, item)
}

// items returns the memory of a slice. Its length and capacity are in items, not in bytes.
func (t *Types) items(p *plan, header []byte) int {
	n := cap(header) * p.item
	if p.of == nil {
		return n
	}
	first := unsafe.Pointer(unsafe.SliceData(header))
	for i := range len(header) {
		n += t.outside(p.of, unsafe.Add(first, i*p.item))
	}
	return n
}

// rare is outside for types whose values do not lie at a fixed place.
func (t *Types) rare(p *plan, v reflect.Value) int {
	switch p.kind {
	case table:
		n := v.Len() * p.item
		for each := v.MapRange(); each.Next(); {
			n += t.item(p.key, each.Key()) + t.item(p.of, each.Value())
		}
		return n
	case union:
		if v.IsNil() {
			return 0
		}
		one := v.Elem() // the struct of one field, behind a pointer
		return t.behind(t.planOf(one.Type()), one.UnsafePointer())
	default:
		return reflected(v.Interface().(proto.Message).ProtoReflect())
	}
}

// item returns the memory that a key or an item of a map refers to. Maps of messages have no
// others than these.
func (t *Types) item(p *plan, v reflect.Value) int {
	switch {
	case p == nil:
		return 0
	case p.kind == pointer:
		return t.behind(p, v.UnsafePointer())
	case p.kind == opaque:
		return t.rare(p, v)
	}
	return v.Len() // a string or bytes
}

// planOf returns the plan of a type.
func (t *Types) planOf(of reflect.Type) *plan {
	if p, known := t.plans.Load(of); known {
		return p.(*plan)
	}
	planned := planning{}
	p := planned.plan(of)
	for one, p := range planned {
		t.plans.Store(one, p) // complete only now: types may refer to themselves
	}
	return p
}

// planning has the plans of the types that were met so far.
type planning map[reflect.Type]*plan

// spare is the share of a map's memory that holds no items: control bytes, and free slots.
const spare = 2

// plan returns the plan of a type. The plan may be incomplete until the first caller returns.
func (known planning) plan(of reflect.Type) *plan {
	if p, ok := known[of]; ok {
		return p
	}
	p := &plan{self: of}
	switch kind := of.Kind(); {
	case kind == reflect.String:
		p.kind = text
	case kind == reflect.Interface:
		p.kind = union
	case of.Implements(reflect.TypeFor[proto.Message]()) && !open(of):
		p.kind = opaque
	case kind == reflect.Pointer, kind == reflect.Slice:
		known[of] = p
		p.kind, p.item, p.of = pointer, int(of.Elem().Size()), known.plan(of.Elem())
		if kind == reflect.Slice {
			p.kind = list
		}
	case kind == reflect.Map:
		known[of] = p
		p.kind, p.item = table, spare*int(of.Key().Size()+of.Elem().Size())
		p.key, p.of = known.plan(of.Key()), known.plan(of.Elem())
	case kind == reflect.Struct:
		known[of] = p
		p.kind = record
		for f := range of.Fields() {
			if shared(f) {
				continue
			}
			if sub := known.plan(f.Type); sub != nil {
				p.fields = append(p.fields, field{f.Offset, sub})
			}
		}
	default:
		p = nil
	}
	known[of] = p
	return p
}

// open reports whether a message type is a pointer to a generated struct with a Go field for
// each field of the message. Others have accessors only: extensions, lazy fields, dynamic
// messages.
func open(of reflect.Type) bool {
	if of.Kind() != reflect.Pointer || of.Elem().Kind() != reflect.Struct {
		return false
	}
	generated := false
	for f := range of.Elem().Fields() {
		switch {
		case shared(f):
			generated = true
		case !f.IsExported() && f.Name != "unknownFields" && f.Name != "sizeCache":
			return false
		}
	}
	return generated
}

// shared reports whether a field is the link from a generated message to the description of
// its type, which all messages of the type share.
func shared(f reflect.StructField) bool { return f.Name == "state" && f.Type.Kind() == reflect.Struct }
