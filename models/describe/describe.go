// Package describe lists the facts about the fields of a model, for people: type, unit, allowed
// values, default, an example, and the comment of the .proto file.
//
//	all, err := describe.Fields(m)
//	all[0].Name, all[0].Type, all[0].Allowed    // mtu, uint32, 68..4294967295
//
// Limits come from package limits, which the agent checks values against. Comments exist for the
// messages of this module, and for those of a program that has given their text (models.Definition.Source).
// The package keeps no state.
package describe

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/models/sample"
)

// A Field is one field of a model.
type Field struct {
	// Name is the path of the field with the names of the .proto file. "[]" stands for each element
	// of a list: "rules[].ip_rule.ip.protocol".
	Name string `json:"name"`
	// Type is that of protobuf: "uint32", "string", "bool"; or "enum" or "message". Lists begin
	// with "[]", maps with "map".
	Type string `json:"type"`
	// Allowed describes the allowed values; empty: all values of the type.
	Allowed string `json:"allowed,omitempty"`
	// Values are the names of an enumeration.
	Values []Value `json:"values,omitempty"`
	// Unit of a number.
	Unit string `json:"unit,omitempty"`
	// Default is the effect of a field that is not set, if it is a value.
	Default string `json:"default,omitempty"`
	// Example is a valid value.
	Example    string `json:"example,omitempty"`
	Required   bool   `json:"required,omitempty"`
	Deprecated bool   `json:"deprecated,omitempty"`
	// Key reports that the field is part of the key of a value.
	Key bool `json:"key,omitempty"`
	// OneOf is the name of a group of fields that exclude each other.
	OneOf string `json:"oneof,omitempty"`
	// Comment is that of the .proto file.
	Comment string `json:"comment,omitempty"`
}

// A Value is a name of an enumeration.
type Value struct {
	Name    string `json:"name"`
	Comment string `json:"comment,omitempty"`
}

// Fields returns the fields of a model, each message followed by its own fields.
func Fields(m *models.Model) ([]Field, error) {
	all, err := sample.All(m)
	if err != nil {
		return nil, err
	}
	d := describer{text: Texts(m), examples: map[string]string{}, key: m.KeyFields()}
	for _, v := range all {
		d.learn("", v.ProtoReflect())
	}
	d.message("", m.New().ProtoReflect().Descriptor(), nil)
	return d.out, nil
}

// A describer collects the fields of one model.
type describer struct {
	text     func(protoreflect.Descriptor) string
	examples map[string]string // by Field.Name
	key      []string
	out      []Field
}

// learn takes examples from a sample. The first one counts.
func (d *describer) learn(path string, m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := path + string(fd.Name())
		switch {
		case fd.IsMap():
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				d.learn(name+"[].", v.List().Get(i).Message())
			}
		case fd.IsList():
			d.example(name, fd, v.List().Get(0))
		case fd.Message() != nil:
			d.learn(name+".", v.Message())
		default:
			d.example(name, fd, v)
		}
		return true
	})
}

// example remembers the example of a field.
func (d *describer) example(name string, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	text := v.String()
	if fd.Enum() != nil {
		if value := fd.Enum().Values().ByNumber(v.Enum()); value != nil {
			text = string(value.Name())
		}
	}
	d.examples[name] = cmp.Or(d.examples[name], text)
}

// message adds the fields of a message type. within are the types around it: a message that
// contains itself is described once.
func (d *describer) message(path string, md protoreflect.MessageDescriptor, within []protoreflect.FullName) {
	if slices.Contains(within, md.FullName()) {
		return
	}
	within = append(slices.Clip(within), md.FullName())
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		name := path + string(fd.Name())
		d.out = append(d.out, d.field(name, path == "", fd))
		if below := fd.Message(); below != nil && !fd.IsMap() {
			if fd.IsList() {
				name += "[]"
			}
			d.message(name+".", below, within)
		}
	}
}

// field describes a field.
func (d *describer) field(name string, top bool, fd protoreflect.FieldDescriptor) Field {
	l := limits.Of(fd)
	f := Field{
		Name: name, Type: typeOf(fd), Unit: l.Unit, Default: l.Default, Required: l.Required,
		Example: d.examples[name], Comment: d.text(fd),
		Key: top && slices.Contains(d.key, string(fd.Name())),
	}
	if options, ok := fd.Options().(*descriptorpb.FieldOptions); ok {
		f.Deprecated = options.GetDeprecated()
	}
	if of := fd.ContainingOneof(); of != nil && !of.IsSynthetic() {
		f.OneOf = string(of.Name())
	}
	if fd.Enum() == nil {
		f.Allowed = l.String()
		return f
	}
	names := limits.Names(fd)
	f.Allowed = strings.Join(names, "|")
	for _, name := range names {
		value := fd.Enum().Values().ByName(protoreflect.Name(name))
		f.Values = append(f.Values, Value{name, d.text(value)})
	}
	if f.Default == "" && !l.Required && !fd.IsList() {
		f.Default = string(fd.Enum().Values().Get(0).Name())
	}
	return f
}

// typeOf returns the type of a field.
func typeOf(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd.IsMap():
		return "map"
	case fd.IsList():
		return "[]" + fd.Kind().String()
	}
	return fd.Kind().String()
}

// Message returns the comment of the message of a model: one or two sentences on its subject.
func Message(m *models.Model) string { return Texts(m)(m.New().ProtoReflect().Descriptor()) }
