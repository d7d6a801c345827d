package models

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Printable reports each text of m that has a control character. Names and other texts reach
// link aliases, VPP tags, file names, commands and terminals. NUL cuts them off there, a line
// feed forges a line of a log, and ESC controls the terminal of whoever looks. The error
// joins a [FieldError] for each of the first few fields.
func Printable(m proto.Message) error {
	var f finder
	f.controls("", m.ProtoReflect())
	return f.found.orNil()
}

// mayHoldControls tells whether JSON text may stand for a control character. In valid JSON those
// below U+0020 are escaped; DEL and U+0080 to U+009F may also stand for themselves.
func mayHoldControls(data []byte) bool {
	return bytes.ContainsAny(data, "\\\x7f") || bytes.IndexByte(data, 0xc2) >= 0
}

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

// control looks at one value of fd: one text, or the texts in a message.
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
