package models

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Printable reports each text of m that contains a control character. Names and other
// texts reach link aliases, VPP tags, file names, commands and terminals. There NUL
// truncates a text, a line feed forges a log line, and ESC controls the terminal of the
// reader. The error joins a [FieldError] for each of the first few fields.
func Printable(m proto.Message) error {
	var f finder
	f.controls("", m.ProtoReflect())
	return f.found.orNil()
}

// mayHoldControls reports whether JSON text may contain a control character, so that
// the walk through most values is skipped. Valid JSON escapes those below U+0020;
// DEL and U+0080 to U+009F may be unescaped.
func mayHoldControls(data []byte) bool {
	return bytes.ContainsAny(data, "\\\x7f") || bytes.IndexByte(data, 0xc2) >= 0
}

// controls reports control characters in all texts of m. path is the field with m,
// "" for the value itself.
func (f *finder) controls(path string, m protoreflect.Message) {
	if path != "" {
		path += "."
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		at := path + string(fd.Name())
		switch {
		case fd.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, one protoreflect.Value) bool {
				f.control(at, fd.MapKey(), k.Value())
				f.control(at+"["+k.String()+"]", fd.MapValue(), one)
				return true
			})
		case fd.IsList():
			for i := range v.List().Len() {
				f.control(fmt.Sprintf("%s[%d]", at, i), fd, v.List().Get(i))
			}
		default:
			f.control(at, fd, v)
		}
		return len(f.found) < mostProblems
	})
}

// control checks one value of fd: one text, or the texts in a message. Secrets are
// reported without their content.
func (f *finder) control(path string, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case len(f.found) >= mostProblems:
	case fd.Message() != nil:
		f.controls(path, v.Message())
	case fd.Kind() == protoreflect.StringKind && strings.ContainsFunc(v.String(), unicode.IsControl):
		var shown any = v.String()
		if isSecret(fd) {
			shown = nil
		}
		f.report(path, shown, "text without control characters")
	}
}
