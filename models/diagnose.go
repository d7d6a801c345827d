package models

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The errors of protojson contain random spaces that differ between builds, have no
// field paths, and name only the first problem. Therefore an invalid value is walked
// again, and protojson parses one scalar after the other.

// mostShown is the approximate number of bytes of invalid values that errors show in
// total.
const mostShown = 200

// diagnose returns an error for each invalid field of data. If it finds none, it
// returns the error of protojson.
func diagnose(data []byte, mt protoreflect.MessageType, refused error) error {
	if err := notObject(data, mt.Descriptor()); err != nil {
		return err
	}
	f := finder{camel: spellingOf(data).camel}
	f.message("", mt.New(), data)
	if len(f.found) == 0 {
		return fmt.Errorf("value of %s: %w", mt.Descriptor().FullName(), refused)
	}
	return f.found
}

// A finder collects the errors of a value.
type finder struct {
	found fieldErrors // at most mostProblems
	shown int         // bytes of values in found
	camel bool        // the style of most names in the document
}

// report adds an error. After mostShown bytes, errors omit the value.
func (f *finder) report(path string, value any, expected string) {
	f.shown += len(show(value))
	if f.shown > mostShown {
		value = nil
	}
	f.found = append(f.found, fieldError(path, value, expected))
}

// message checks the JSON object raw. path is the path of the object.
func (f *finder) message(path string, m protoreflect.Message, raw []byte) {
	if path != "" {
		path += "."
	}
	seen := map[protoreflect.Name]bool{}
	for name, value := range members(raw) {
		if len(f.found) >= mostProblems {
			return
		}
		fd := fieldNamed(m.Descriptor(), name)
		switch {
		case fd == nil:
			f.report(path+printable(name), nil, known(m.Descriptor(), name, f.camel))
		case seen[fd.Name()]:
			f.report(path+name, nil, "the field only once")
		case value[0] == 'n':
			seen[fd.Name()] = true
		default:
			seen[fd.Name()] = true
			f.oneof(path+name, fd, seen)
			f.field(path+name, m, fd, value)
		}
	}
}

// oneof reports fd, which is at path, if another member of its oneof was set before.
func (f *finder) oneof(path string, fd protoreflect.FieldDescriptor, seen map[protoreflect.Name]bool) {
	of := fd.ContainingOneof()
	if of == nil {
		return
	}
	mark := of.Name() + " " // no field name contains a space
	if seen[mark] {
		f.report(path, nil, "only one of "+strings.Join(fieldNames(of.Fields(), f.camel), ", "))
	}
	seen[mark] = true
}

// field checks the value of fd, a field of m.
func (f *finder) field(path string, m protoreflect.Message, fd protoreflect.FieldDescriptor, raw []byte) {
	switch {
	case fd.IsList() && raw[0] != '[':
		f.report(path, shownOf(fd, raw), "a list: [...]")
	case fd.IsList():
		elements := m.NewField(fd).List()
		for i, raw := range items(raw) {
			f.element(path+"["+strconv.Itoa(i)+"]", m, fd, elements.NewElement, raw)
		}
	default:
		f.element(path, m, fd, func() protoreflect.Value { return m.NewField(fd) }, raw)
	}
}

// element checks one value of fd; fresh returns an empty one.
func (f *finder) element(path string, m protoreflect.Message, fd protoreflect.FieldDescriptor, fresh func() protoreflect.Value, raw []byte) {
	switch {
	case len(f.found) >= mostProblems:
	case fd.Message() != nil && !fd.IsMap() && raw[0] == '{':
		f.message(path, fresh().Message(), raw)
	case !parses(m, fd, raw):
		f.report(path, shownOf(fd, raw), expected(fd, raw))
	}
}

// parses reports whether protojson accepts raw as a value, or an element, of fd.
func parses(m protoreflect.Message, fd protoreflect.FieldDescriptor, raw []byte) bool {
	format := `{%q:%s}`
	if fd.IsList() {
		format = `{%q:[%s]}`
	}
	return protojson.Unmarshal(fmt.Appendf(nil, format, fd.Name(), raw), m.New().Interface()) == nil
}

// members yields the members of a JSON object, also repeated ones.
func members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		d := json.NewDecoder(bytes.NewReader(object))
		_, _ = d.Token()
		for d.More() {
			name, _ := d.Token()
			var value json.RawMessage
			if d.Decode(&value) != nil || !yield(name.(string), value) {
				return
			}
		}
	}
}

// items yields the elements of a JSON list.
func items(list []byte) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		d := json.NewDecoder(bytes.NewReader(list))
		_, _ = d.Token()
		for i := 0; d.More(); i++ {
			var item json.RawMessage
			if d.Decode(&item) != nil || !yield(i, item) {
				return
			}
		}
	}
}
