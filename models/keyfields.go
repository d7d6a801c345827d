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

// A keyField is a field that the name of a value is made of.
type keyField struct {
	fd  protoreflect.FieldDescriptor
	via string // function of the template that it goes through: ipnet, protoip or none
}

var fieldInTemplate = regexp.MustCompile(`(?:(ipnet|protoip) )?\.(\w+)`)

// keyFields reads from the template which fields make the name, in order.
func (m *Model) keyFields() []keyField {
	var out []keyField
	seen := map[protoreflect.Name]bool{}
	fields := m.message.Descriptor().Fields()
	for _, match := range fieldInTemplate.FindAllStringSubmatch(m.template, -1) {
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

// KeyFields returns the fields that the name of a value is made of, by proto name.
func (m *Model) KeyFields() []string {
	var out []string
	for _, f := range m.keyFields() {
		out = append(out, string(f.fd.Name()))
	}
	return out
}

// goName is how Go, and so the template, calls a field.
func goName(fd protoreflect.FieldDescriptor) string {
	name := camel(string(fd.Name()))
	return strings.ToUpper(name[:1]) + name[1:]
}

// text is how the field stands in the name of v.
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

func (f keyField) wrong(v proto.Message, want string) error {
	value := v.ProtoReflect().Get(f.fd).Interface()
	if f.fd.Enum() != nil {
		value = literal(f.text(v))
	}
	return &FieldError{Field: string(f.fd.Name()), Value: value, Expected: want}
}

// unparsed reports the fields whose addresses should be in the name of v and do not parse.
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

// noName reports the fields because of which nothing is left of the name of v
// when its key is cleaned: those that lead upwards, or else those that are empty.
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
	return cmp.Or(upwards.orNil(), empty.orNil())
}

// mismatch says that v, whose content makes the key made, was found under key,
// and which fields have it so: those that key has not, or else those that are
// empty, or else all it is made of.
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
	return fmt.Errorf("%w: key %q, but the value makes %q: %w", ErrKeyMismatch,
		cut(key, longestKey), cut(made, longestKey), cmp.Or(absent.orNil(), empty.orNil(), all.orNil()))
}

// hasElement tells whether text, which is not empty, stands in name between slashes, dashes or ends.
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
