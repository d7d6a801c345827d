package models

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Check reports what no value may have, whatever its model: lists with more than [MaxEntries]
// entries, and texts with a control character. Names and other texts reach link aliases, VPP tags,
// file names, commands and terminals. There NUL truncates a text, a line feed forges a log line, and
// ESC controls the terminal of the reader. The error joins a [FieldError] for each of the first few
// fields.
func Check(m proto.Message) error {
	var f finder
	f.check("", m.ProtoReflect())
	return f.found.orNil()
}

// mayHoldControls reports whether JSON text may contain a control character, so that
// the walk through most values is skipped. Valid JSON escapes those below U+0020;
// DEL and U+0080 to U+009F may be unescaped.
func mayHoldControls(data []byte) bool {
	return bytes.ContainsAny(data, "\\\x7f") || bytes.IndexByte(data, 0xc2) >= 0
}

// check checks all fields of m. path is the field with m, "" for the value itself.
func (f *finder) check(path string, m protoreflect.Message) {
	if path != "" {
		path += "."
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		at := path + string(fd.Name())
		switch {
		case fd.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, one protoreflect.Value) bool {
				f.control(at, fd.MapKey(), k.Value())
				f.control(at+"["+printable(k.String())+"]", fd.MapValue(), one)
				return true
			})
		case fd.IsList():
			f.checkList(at, fd, v.List())
		default:
			f.control(at, fd, v)
		}
		return len(f.found) < mostProblems
	})
}

// checkList checks a list and its entries. Nearly all texts are fine, so they get no path.
func (f *finder) checkList(path string, fd protoreflect.FieldDescriptor, list protoreflect.List) {
	if list.Len() > MaxEntries {
		f.found = append(f.found, tooMany(path, list.Len()))
		return
	}
	for i := range list.Len() {
		one := list.Get(i)
		if fd.Message() == nil && !holdsControls(fd, one) {
			continue
		}
		f.control(path+"["+strconv.Itoa(i)+"]", fd, one)
	}
}

// holdsControls reports whether a scalar of fd is a text with a control character.
func holdsControls(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	return fd.Kind() == protoreflect.StringKind && strings.ContainsFunc(v.String(), unicode.IsControl)
}

// control checks one value of fd: one text, or the texts in a message. Secrets are
// reported without their content.
func (f *finder) control(path string, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case len(f.found) >= mostProblems:
	case fd.Message() != nil:
		f.check(path, v.Message())
	case holdsControls(fd, v):
		var shown any = v.String()
		if isSecret(fd) {
			shown = nil
		}
		f.report(path, shown, "text without control characters")
	}
}
