package models

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/internal/nearest"
)

// mostNames is the maximum number of names that an error lists.
const mostNames = 8

// expected describes the values that fd accepts in place of raw.
func expected(fd protoreflect.FieldDescriptor, raw []byte) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.StringKind:
		return "text in quotes"
	case protoreflect.EnumKind:
		given, _ := shown(raw).(string)
		return oneOf(given, valueNames(fd.Enum().Values()))
	case protoreflect.Uint32Kind:
		return "a whole number from 0 to 4294967295"
	case protoreflect.Int32Kind:
		return "a whole number from -2147483648 to 2147483647"
	case protoreflect.Uint64Kind:
		return "a whole number from 0 to 18446744073709551615"
	case protoreflect.MessageKind:
		return "an object: {...}"
	default:
		return fmt.Sprintf("a value of type %s", fd.Kind())
	}
}

// known describes the fields of md for an error about an unknown name, in its style. If both styles
// spell the name alike, camel is the style of the document.
func known(md protoreflect.MessageDescriptor, name string, camel bool) string {
	if own := style(name); own != 0 {
		camel = own > 0
	}
	names := fieldNames(md.Fields(), camel)
	if near := nearest.Word(name, names); near != "" {
		return "a known field; did you mean " + near + "?"
	}
	return "a known field: " + strings.Join(trim(names), ", ")
}

// oneOf lists the allowed names, and suggests the most similar one.
func oneOf(given string, names []string) string {
	list := "one of " + strings.Join(trim(names), ", ")
	if near := nearest.Word(given, names); near != "" {
		return list + "; did you mean " + near + "?"
	}
	return list
}

// trim shortens a long list.
func trim(names []string) []string {
	if len(names) <= mostNames {
		return names
	}
	return append(names[:mostNames:mostNames], "…")
}

// fieldNames returns the names of fields: in lowerCamelCase, or those of the .proto file.
func fieldNames(fields protoreflect.FieldDescriptors, camel bool) []string {
	names := make([]string, fields.Len())
	for i := range names {
		names[i] = nameIn(fields.Get(i), camel)
	}
	return names
}

// valueNames returns the names of an enum.
func valueNames(values protoreflect.EnumValueDescriptors) []string {
	names := make([]string, values.Len())
	for i := range names {
		names[i] = string(values.Get(i).Name())
	}
	return names
}

// fieldNamed finds a field by its JSON or proto name, or returns nil.
func fieldNamed(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByJSONName(name); fd != nil {
		return fd
	}
	return md.Fields().ByTextName(name)
}

// shown returns JSON as errors show it: text without quotes, other values as they
// are.
func shown(raw []byte) any {
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	var line bytes.Buffer
	_ = json.Compact(&line, raw)
	return literal(line.String())
}

// A literal is JSON that is not text. Errors show it without quotes.
type literal string

// printable returns a name from outside as part of a path. Special characters are
// escaped.
func printable(name string) string {
	name = cut(name, longestShown)
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` || name == "" {
		return quoted
	}
	return name
}
