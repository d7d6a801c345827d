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

// Package protojson says what is wrong in words that change from build to build,
// without paths, and only the first of it. So where it refuses a value, the value is
// walked again, and protojson asked about one scalar after the other.

// mostShown is how much of a value is shown, in bytes, more or less.
const mostShown = 200

// diagnose says why data does not parse as a message of type mt, which refused says it does not.
func diagnose(data []byte, mt protoreflect.MessageType, refused error) error {
	if err := notObject(data, mt.Descriptor()); err != nil {
		return err
	}
	var f finder
	f.message("", mt.New(), data)
	if len(f.found) == 0 {
		return fmt.Errorf("value of %s: %w", mt.Descriptor().FullName(), refused)
	}
	return f.found
}

// A finder collects what is wrong with the fields of a value.
type finder struct {
	found fieldErrors
	shown int
}

func (f *finder) report(path string, value any, want string) {
	f.shown += len(show(value))
	if f.shown > mostShown {
		value = nil
	}
	f.found = append(f.found, &FieldError{Field: path, Value: value, Expected: want})
}

// message looks at the object raw, whose fields are below path.
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
			f.report(path+printable(name), nil, known(m.Descriptor(), name))
		case seen[fd.Name()]:
			f.report(path+string(fd.Name()), nil, "the field only once")
		case value[0] == 'n':
			seen[fd.Name()] = true
		default:
			seen[fd.Name()] = true
			f.oneof(path, fd, seen)
			f.field(path+string(fd.Name()), m, fd, value)
		}
	}
}

// oneof reports fd if another member of its oneof has been seen.
func (f *finder) oneof(path string, fd protoreflect.FieldDescriptor, seen map[protoreflect.Name]bool) {
	of := fd.ContainingOneof()
	if of == nil {
		return
	}
	mark := of.Name() + " " // no field is called so
	if seen[mark] {
		f.report(path+string(fd.Name()), nil, "only one of "+strings.Join(fieldNames(of.Fields()), ", "))
	}
	seen[mark] = true
}

// field looks at the value of fd, a field of m.
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

// element looks at one value of fd, which fresh makes an empty one of.
func (f *finder) element(path string, m protoreflect.Message, fd protoreflect.FieldDescriptor, fresh func() protoreflect.Value, raw []byte) {
	switch {
	case len(f.found) >= mostProblems:
	case fd.Message() != nil && !fd.IsMap() && raw[0] == '{':
		f.message(path, fresh().Message(), raw)
	case !parses(m, fd, raw):
		f.report(path, shownOf(fd, raw), expected(fd, raw))
	}
}

// parses asks protojson whether raw can be the value, or an element, of fd.
func parses(m protoreflect.Message, fd protoreflect.FieldDescriptor, raw []byte) bool {
	format := `{%q:%s}`
	if fd.IsList() {
		format = `{%q:[%s]}`
	}
	return protojson.Unmarshal(fmt.Appendf(nil, format, fd.Name(), raw), m.New().Interface()) == nil
}

// members yields name and value of each member of a JSON object.
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
