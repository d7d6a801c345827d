// Package jsonschema describes a configuration document as a JSON schema (draft 2020-12), for
// editors that complete and check it: groups such as vppConfig, with a field for each
// model.
//
//	document := jsonschema.Of(models.BuiltIn(), jsonschema.BothNames)
//
// Each message is one definition, under its full name. Fields of protobuf have two names,
// dst_network and dstNetwork, and both are accepted; Names chooses which of them the
// schema allows. Enumerations are names or numbers, and 64-bit numbers may be texts, as
// protobuf's JSON says.
//
// Fields have their comments, and the limits of package limits as ranges, patterns and lengths.
// Required fields are those that these limits and the key of a value need.
// Rules about several fields are missing: the agent's validation knows more. A document may also
// have the list data of keys and values, whose values are not checked.
package jsonschema

import (
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/describe"
	"github.com/keyplane/keyplane/models/limits"
)

// Names chooses the names of fields.
type Names int

const (
	BothNames  Names = iota
	ProtoNames       // dst_network
	JSONNames        // dstNetwork
)

// An object is a JSON object. encoding/json sorts its keys, so that equal schemas are equal
// texts.
type object = map[string]any

// Of returns the schema of a configuration document.
func Of(known *models.Registry, names Names) map[string]any {
	b := builder{names, describe.Texts(known.All()...), object{}}
	groups := object{}
	for _, group := range known.ConfigGroups() {
		fields := object{}
		for _, field := range known.ConfigFields(group) {
			m, repeated, _ := known.ByConfigField(group, field)
			message := m.New().ProtoReflect().Descriptor()
			value := b.message(message)
			b.named(m)
			if repeated {
				value = object{"type": "array", "items": value}
			}
			value["description"] = b.text(message)
			b.add(fields, field, value)
		}
		b.add(groups, group, object{"type": "object", "properties": fields, "additionalProperties": false})
	}
	groups["data"] = object{
		"type": "array", "description": "Values by their keys.",
		"items": object{
			"type": "object", "required": []any{"key"}, "additionalProperties": false,
			"properties": object{"key": object{"type": "string"}, "value": object{}},
		},
	}
	return object{
		"$schema": draft, "title": "configuration",
		"type": "object", "properties": groups, "additionalProperties": false, "$defs": b.definitions,
	}
}

// draft is the version of JSON Schema.
const draft = "https://json-schema.org/draft/2020-12/schema"

// OfModel returns the schema of a value of one model.
func OfModel(m *models.Model, names Names) map[string]any {
	b := builder{names, describe.Texts(m), object{}}
	out := b.message(m.New().ProtoReflect().Descriptor())
	b.named(m)
	out["$schema"], out["title"], out["$defs"] = draft, m.Name(), b.definitions
	return out
}

// A builder collects the definitions of messages.
type builder struct {
	// names chooses the notation of fields. definitions has each message once, under its full
	// name, so a message may contain itself.
	names       Names
	text        func(protoreflect.Descriptor) string // comments
	definitions object
}

// add adds a property under its chosen names. jsonName is its name in JSON.
func (b builder) add(properties object, jsonName string, value any) {
	if b.names != ProtoNames {
		properties[jsonName] = value
	}
	if b.names != JSONNames {
		properties[underscored(jsonName)] = value
	}
}

// underscored writes a name that begins with a small letter with underscores. Names with
// a capital are names of messages, and have one notation.
func underscored(name string) string {
	if unicode.IsUpper(rune(name[0])) {
		return name
	}
	var out strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// message returns a reference to the definition of a message, which it adds if needed.
func (b builder) message(m protoreflect.MessageDescriptor) object {
	name := string(m.FullName())
	if _, known := b.definitions[name]; !known {
		properties := object{}
		definition := object{"type": "object", "properties": properties, "additionalProperties": false}
		b.definitions[name] = definition // before its fields: they may refer to it
		for i := range m.Fields().Len() {
			fd := m.Fields().Get(i)
			value := b.field(fd)
			if b.names != ProtoNames {
				properties[fd.JSONName()] = value
			}
			if b.names != JSONNames {
				properties[fd.TextName()] = value
			}
			if limits.Of(fd).Required && fd.ContainingOneof() == nil {
				b.require(definition, fd)
			}
		}
	}
	return object{"$ref": "#/$defs/" + name}
}

// require adds that a definition needs a field. A field with two notations is needed in either.
func (b builder) require(definition object, fd protoreflect.FieldDescriptor) {
	name := fd.TextName()
	if b.names == JSONNames {
		name = fd.JSONName()
	}
	if b.names != BothNames || name == fd.JSONName() {
		required, _ := definition["required"].([]any)
		definition["required"] = append(required, name)
		return
	}
	all, _ := definition["allOf"].([]any)
	either := []any{object{"required": []any{name}}, object{"required": []any{fd.JSONName()}}}
	definition["allOf"] = append(all, object{"anyOf": either})
}

// named adds that a value needs the only field of its name, which the limits of models of other
// programs lack. A name of several fields may omit some.
func (b builder) named(m *models.Model) {
	names := m.KeyFields()
	if len(names) != 1 {
		return
	}
	fd := m.New().ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(names[0]))
	if fd == nil || fd.Kind() != protoreflect.StringKind || limits.Of(fd).Required {
		return
	}
	if definition, ok := b.definitions[m.ProtoName()].(object); ok {
		b.require(definition, fd)
	}
}

// field returns the schema of a field.
func (b builder) field(fd protoreflect.FieldDescriptor) object {
	out := b.values(fd)
	l, text := limits.Of(fd), b.text(fd)
	if l.Unit != "" {
		text = strings.TrimSpace(text + " Unit: " + l.Unit + ".")
	}
	if text != "" {
		out["description"] = text
	}
	return out
}

// values returns the schema of the values of a field.
func (b builder) values(fd protoreflect.FieldDescriptor) object {
	switch {
	case fd.IsMap():
		return object{"type": "object", "additionalProperties": b.single(fd.MapValue())}
	case fd.IsList():
		return object{"type": "array", "items": b.single(fd), "maxItems": models.MaxEntries}
	}
	return b.single(fd)
}

// single returns the schema of one element of a field.
func (b builder) single(fd protoreflect.FieldDescriptor) object {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return b.message(fd.Message())
	case protoreflect.EnumKind:
		var names []any
		for _, name := range limits.Names(fd) {
			names = append(names, name)
		}
		return object{"anyOf": []any{object{"type": "string", "enum": names}, object{"type": "integer"}}}
	case protoreflect.BoolKind:
		return object{"type": "boolean"}
	case protoreflect.StringKind, protoreflect.BytesKind:
		return text(fd)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return object{"type": []any{"number", "string"}}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return number(fd)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return object{"type": "integer"}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return object{"type": []any{"integer", "string"}}
	}
	return object{} // a kind of a later protobuf
}

// text returns the schema of a text. Lengths are omitted for other than ASCII: JSON Schema counts
// characters, and limits count bytes, so a text within the limits is never refused.
func text(fd protoreflect.FieldDescriptor) object {
	l, out := limits.Of(fd), object{"type": "string"}
	if pattern := l.Pattern(); pattern != "" {
		out["pattern"] = pattern
	}
	if l.MaxBytes > 0 {
		out["maxLength"] = l.MaxBytes
	}
	return out
}

// number returns the schema of a number. Zero is always allowed, as it means the default.
func number(fd protoreflect.FieldDescriptor) object {
	l, out := limits.Of(fd), object{"type": "integer", "minimum": 0, "maximum": uint32(1<<32 - 1)}
	if l.Bounded() {
		out["maximum"] = l.Max
	}
	if l.Min > 0 {
		delete(out, "minimum")
		out["anyOf"] = []any{object{"minimum": l.Min}, object{"const": 0}}
	}
	if l.Step > 0 {
		out["multipleOf"] = l.Step
	}
	return out
}
