package models

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A keyField is a field that is part of the name of a value.
type keyField struct {
	fd  protoreflect.FieldDescriptor
	via string // function of the template that is applied: ipnet, protoip or none
}

// fieldInTemplate matches the fields in a name template.
var fieldInTemplate = regexp.MustCompile(`(?:(ipnet|protoip) )?\.(\w+)`)

// keyFields returns the fields in the name template, in order.
func (m *Model) keyFields() []keyField { return keyFieldsIn(m.template, m.message().Descriptor()) }

// keyFieldsIn returns the fields of a message in a name template, in order.
func keyFieldsIn(template string, message protoreflect.MessageDescriptor) []keyField {
	var out []keyField
	seen := map[protoreflect.Name]bool{}
	fields := message.Fields()
	for _, match := range fieldInTemplate.FindAllStringSubmatch(template, -1) {
		for i := range fields.Len() {
			fd := fields.Get(i)
			if goName(fd) == match[2] && !seen[fd.Name()] {
				seen[fd.Name()] = true
				out = append(out, keyField{fd, match[1]})
			}
		}
	}
	return out
}

// KeyFields returns the proto names of the fields that form the name of a value.
func (m *Model) KeyFields() []string {
	var out []string
	for _, f := range m.keyFields() {
		out = append(out, string(f.fd.Name()))
	}
	return out
}

// goName returns the name of the field in Go, which templates use.
func goName(fd protoreflect.FieldDescriptor) string {
	name := camel(string(fd.Name()))
	return strings.ToUpper(name[:1]) + name[1:]
}

// text returns the field as it appears in the name of v.
func (f keyField) text(v proto.Message) string {
	value := v.ProtoReflect().Get(f.fd)
	switch {
	case f.via == "ipnet":
		return network(value.String())
	case f.via == "protoip":
		return family(value.String())
	case f.fd.Enum() != nil:
		if e := f.fd.Enum().Values().ByNumber(value.Enum()); e != nil {
			return string(e.Name())
		}
	}
	return value.String()
}

// wrong returns an error about the field.
func (f keyField) wrong(v proto.Message, expected string) error {
	value := v.ProtoReflect().Get(f.fd).Interface()
	if f.fd.Enum() != nil {
		value = literal(f.text(v))
	}
	return fieldError(string(f.fd.Name()), value, expected)
}

// unparsed reports invalid addresses in the fields that form the name of v.
func (m *Model) unparsed(v proto.Message) error {
	var errs fieldErrors
	for _, f := range m.keyFields() {
		switch text := f.text(v); {
		case f.via == "ipnet" && text == invalid+"/0":
			errs = append(errs, f.wrong(v, `a network with prefix length, such as "10.0.0.0/24"`))
		case f.via == "protoip" && text == invalid:
			errs = append(errs, f.wrong(v, `an address, such as "10.0.0.1"`))
		}
	}
	return errs.orNil()
}

// noName reports the fields that leave no name after the key is cleaned: those with
// "..", or else those that are empty.
func (m *Model) noName(v proto.Message) error {
	var upwards, empty fieldErrors
	for _, f := range m.keyFields() {
		switch text := f.text(v); {
		case strings.Contains("/"+text+"/", "/../"):
			upwards = append(upwards, f.wrong(v, `a text without "..", since it is part of the key`))
		case path.Clean("/"+text) == "/":
			empty = append(empty, f.wrong(v, ""))
		}
	}
	return cmp.Or(upwards.orNil(), empty.orNil(), fmt.Errorf("the name, by the template %s, is empty", m.template))
}

// mismatch returns ErrKeyMismatch for a value under key with the content of key
// made. It names the fields that do not occur in key, or else those that are empty,
// or else all fields of the name.
func (m *Model) mismatch(key, made string, v proto.Message) error {
	var absent, empty, all fieldErrors
	for _, f := range m.keyFields() {
		err := f.wrong(v, "the value in the key")
		all = append(all, err)
		switch text := path.Clean("/" + f.text(v))[1:]; {
		case text == "":
			empty = append(empty, err)
		case !hasElement(strings.TrimPrefix(key, m.prefix), text):
			absent = append(absent, err)
		}
	}
	return &mismatchError{cut(key, longestKey), cut(made, longestKey), cmp.Or(absent.orNil(), empty.orNil(), all.orNil())}
}

// A mismatchError is ErrKeyMismatch with the key, the key that the value makes, and the fields that
// disagree. It builds its text on demand; see SpellFields.
type mismatchError struct {
	key, made string
	fields    error
}

// Error implements error.
func (e *mismatchError) Error() string {
	return fmt.Sprintf("%v: key %q, but the value makes %q: %v", ErrKeyMismatch, e.key, e.made, e.fields)
}

// Unwrap returns ErrKeyMismatch and the errors of the fields.
func (e *mismatchError) Unwrap() []error { return []error{ErrKeyMismatch, e.fields} }

// hasElement reports whether text occurs in name between slashes, dashes or the
// ends. text is not empty.
func hasElement(name, text string) bool {
	name = "/" + name + "/"
	for _, before := range []string{"/", "-"} {
		for _, after := range []string{"/", "-"} {
			if strings.Contains(name, before+text+after) {
				return true
			}
		}
	}
	return false
}
