package models

import (
	"strings"
	"text/template"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// DefineMessage is [Define] for messages that this program was not built with: t is made of the
// .proto files of another program (package dynamicpb), and d is what that program says of its
// model. Names are made as there: templates see fields by their names in Go.
func DefineMessage(d Definition, t protoreflect.MessageType) *Model {
	m := &Model{
		Class: "config", Module: d.Module, Version: d.Version, Type: d.Type,
		prefix: prefixOf("config", d.Module, d.Version, d.Type),
		late:   func() *late { return &late{message: t, config: strings.Fields(d.Field)} },
	}
	m.define(d, func(name *template.Template, v proto.Message) (string, error) {
		var out strings.Builder
		err := name.Execute(&out, goFields(v.ProtoReflect()))
		return out.String(), err
	})
	return m
}

// goFields returns the fields of a message as a template sees those of a struct: by their names
// in Go, with messages as maps and enumerations as the names of their numbers.
func goFields(m protoreflect.Message) map[string]any {
	out := map[string]any{}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.IsList() || fd.IsMap() {
			continue // no name is made of several values
		}
		switch value := m.Get(fd); {
		case fd.Message() != nil && m.Has(fd):
			out[goName(fd)] = goFields(value.Message())
		case fd.Message() != nil: // a template of a nil message has no text, as that of an empty map
			out[goName(fd)] = map[string]any{}
		case fd.Enum() != nil:
			out[goName(fd)] = keyField{fd: fd}.text(m.Interface())
		default:
			out[goName(fd)] = value.Interface()
		}
	}
	return out
}
