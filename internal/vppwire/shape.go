package vppwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.fd.io/govpp/api"
)

// GoVPP's bindings make a list as long as a message says, before they read its items. So a
// message of a few bytes could ask for more memory than there is. The shape of a message
// type says where its counts are; each is checked against the bytes that follow before the
// bindings see the message.

// ErrCount is the error of Decode for a count of items that exceeds the message's length.
var ErrCount = errors.New("more than the message can hold")

// A shape is how a type lies in a message.
type shape struct {
	size   int     // bytes it has at least
	fixed  bool    // it has always that many
	texts  bool    // there are strings in it
	fields []field // of a struct; nil: it is read in one piece
}

// A field is a field of a struct.
type field struct {
	name  string
	kind  fieldKind
	of    *shape // of the field, or of one item of a list
	items int    // of an array
	count int    // of a list: the slot of its count
	slot  int    // of an integer that is a count: where it is kept; else -1
}

// A fieldKind says how the length of a field is known.
type fieldKind uint8

const (
	one    fieldKind = iota // of
	array                   // items of of
	list                    // as many of of as an earlier field says
	text                    // a string of fixed size
	sized                   // a string behind its length
	number                  // an integer that is a count
)

// shapeOf returns the shape of a message type. The Decoder works it out once for each type.
func (d *Decoder) shapeOf(m api.Message) (*shape, error) {
	t := reflect.TypeOf(m).Elem()
	if s, ok := d.shapes.Load(t); ok {
		return s.(*shape), nil
	}
	s, err := structShape(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.GetMessageName(), err)
	}
	d.shapes.Store(t, s)
	return s, nil
}

// structShape computes the shape of a struct from its fields and their binapi tags.
func structShape(t reflect.Type) (*shape, error) {
	s := &shape{fixed: true}
	numbers := map[string]int{} // fields by their names in VPP
	for i := range t.NumField() {
		f := t.Field(i)
		tag := parseTag(f.Tag.Get("binapi"))
		shaped, err := fieldShape(f.Type, tag)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		shaped.name, shaped.slot = f.Name, -1
		if shaped.kind == list {
			at, known := numbers[tag.length]
			if !known {
				return nil, fmt.Errorf("%s.%s: no field %q before it has its length", t, f.Name, tag.length)
			}
			s.fields[at].kind, s.fields[at].slot, shaped.count = number, at, at
		}
		numbers[tag.name] = i
		s.add(shaped)
	}
	if s.fixed && !s.texts {
		s.fields = nil
	}
	return s, nil
}

// add adds a field behind those of s.
func (s *shape) add(f field) {
	s.fields = append(s.fields, f)
	s.texts = s.texts || f.kind == text || f.kind == sized || f.of.texts
	switch f.kind {
	case one, text:
		s.size += f.of.size
		s.fixed = s.fixed && f.of.fixed
	case array:
		s.size += f.items * f.of.size
		s.fixed = s.fixed && f.of.fixed
	case sized:
		s.size += 4
		s.fixed = false
	case list:
		s.fixed = false
	case number:
	}
}

// A binding is what the tag of a field says: `binapi:"fib_path[n_paths],name=paths"`.
type binding struct{ length, name string }

// parseTag reads the tag that GoVPP's generator writes: type, length, name and limits.
func parseTag(tag string) (b binding) {
	of, rest, _ := strings.Cut(tag, ",")
	if _, length, is := strings.Cut(of, "["); is {
		b.length = strings.TrimSuffix(length, "]")
	}
	for part := range strings.SplitSeq(rest, ",") {
		if name, is := strings.CutPrefix(part, "name="); is {
			b.name = name
		}
	}
	return b
}

// fieldShape computes the shape of one field. The length of a list is in an earlier field.
func fieldShape(t reflect.Type, tag binding) (field, error) {
	fixed, numeric := strconv.Atoi(tag.length)
	switch t.Kind() {
	case reflect.String:
		if tag.length == "" {
			return field{kind: sized, of: &shape{}}, nil
		}
		return field{kind: text, of: &shape{size: fixed, fixed: true}}, numeric
	case reflect.Slice:
		of, err := typeShape(t.Elem())
		if numeric == nil {
			return field{kind: array, of: of, items: fixed}, err
		}
		return field{kind: list, of: of}, err
	case reflect.Array:
		of, err := typeShape(t.Elem())
		return field{kind: array, of: of, items: t.Len()}, err
	default:
		of, err := typeShape(t)
		return field{kind: one, of: of}, err
	}
}

// typeShape computes the shape of a type, or an error for one that messages never have.
func typeShape(t reflect.Type) (*shape, error) {
	switch t.Kind() {
	case reflect.Struct:
		return structShape(t)
	case reflect.Array:
		of, err := typeShape(t.Elem())
		if err == nil && (!of.fixed || of.texts) {
			err = fmt.Errorf("%s has items of any size", t)
		}
		if err != nil {
			return nil, err
		}
		return &shape{size: t.Len() * of.size, fixed: true}, nil
	case reflect.Bool, reflect.Int8, reflect.Uint8, reflect.Int16, reflect.Uint16, reflect.Int32, reflect.Uint32,
		reflect.Int64, reflect.Uint64, reflect.Float64:
		return &shape{size: int(t.Size()), fixed: true}, nil
	default:
		return nil, fmt.Errorf("%s has no place in a message", t)
	}
}

// check returns how many of the bytes a value of shape s has, which are enough for all
// that its counts say. It makes its strings valid UTF-8, as values and keys are.
func (s *shape) check(b []byte) (int, error) {
	if len(b) < s.size {
		return 0, fmt.Errorf("%d bytes where %d are needed", len(b), s.size)
	}
	if s.fields == nil {
		return s.size, nil
	}
	var counts []uint64 // by slot
	at := 0
	for i := range s.fields {
		f := &s.fields[i]
		rest := b[at:]
		if f.kind == number && counts == nil {
			counts = make([]uint64, len(s.fields))
		}
		n, err := f.check(rest, counts)
		if err == nil && n > len(rest) {
			err = fmt.Errorf("%d bytes where %d are needed", len(rest), n)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", f.name, err)
		}
		at += n
	}
	return at, nil
}

// check is check of a field, behind which other fields may come. It may return more than
// there is.
func (f *field) check(b []byte, counts []uint64) (int, error) {
	switch f.kind {
	case number:
		counts[f.slot] = unsigned(b[:min(f.of.size, len(b))])
		return f.of.size, nil
	case array:
		return f.of.checkAll(uint64(f.items), b)
	case list:
		return f.of.checkAll(counts[f.count], b)
	case text:
		clean(untilNUL(b[:min(f.of.size, len(b))]), false)
		return f.of.size, nil
	case sized:
		return checkSized(b)
	case one:
	}
	return f.of.check(b)
}

// checkAll is check of many values in a row.
func (s *shape) checkAll(count uint64, b []byte) (int, error) {
	// An item of no bytes would not be bounded by the message.
	if least := uint64(max(s.size, 1)); count > uint64(len(b))/least {
		return 0, fmt.Errorf("%w: %d items of %d bytes or more in %d bytes", ErrCount, count, least, len(b))
	}
	if s.fields == nil {
		return int(count) * s.size, nil
	}
	at := 0
	for range count {
		n, err := s.check(b[at:])
		if err != nil {
			return 0, err
		}
		at += n
	}
	return at, nil
}

// checkSized is check of a string behind its length.
func checkSized(b []byte) (int, error) {
	if len(b) < 4 {
		return 0, fmt.Errorf("%d bytes where 4 are needed", len(b))
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if n > uint64(len(b)-4) {
		return 0, fmt.Errorf("%w: a string of %d bytes in %d bytes", ErrCount, n, len(b)-4)
	}
	clean(b[4:4+n], true)
	return 4 + int(n), nil
}

// unsigned reads a big-endian integer of any size.
func unsigned(b []byte) (n uint64) {
	for _, one := range b {
		n = n<<8 | uint64(one)
	}
	return n
}

// untilNUL returns the text in a field of fixed size: the rest is zeros.
func untilNUL(b []byte) []byte {
	for i, one := range b {
		if one == 0 {
			return b[:i]
		}
	}
	return b
}

// Text is a string as Decode reads it from a field of fixed size.
func Text(text string) string {
	b := []byte(text)
	clean(b, false)
	return string(b)
}

// clean puts a question mark in place of each byte that is not of UTF-8 and, unless lines
// are allowed, of each control character. Names are shown on terminals, and none that is
// declared has any.
func clean(b []byte, lines bool) {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 || !lines && unicode.IsControl(r) {
			for i := range n {
				b[i] = '?'
			}
		}
		b = b[n:]
	}
}
