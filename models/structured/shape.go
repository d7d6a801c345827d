package structured

import (
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured/document"
)

// A messageShape describes a message to package document.
type messageShape struct {
	of protoreflect.MessageDescriptor
}

// A fieldShape describes a field without a message.
type fieldShape struct{ of protoreflect.FieldDescriptor }

// shapeOf returns the shape of a model's values.
func shapeOf(m *models.Model) messageShape {
	return messageShape{m.New().ProtoReflect().Descriptor()}
}

// field finds a field by its name in either notation, or returns nil.
func (s messageShape) field(name string) protoreflect.FieldDescriptor {
	if fd := s.of.Fields().ByTextName(name); fd != nil {
		return fd
	}
	return s.of.Fields().ByJSONName(name)
}

// Field implements document.Shape.
func (s messageShape) Field(name string) document.Shape {
	switch fd := s.field(name); {
	case fd == nil || fd.IsMap():
		return nil
	case fd.Message() != nil:
		return messageShape{fd.Message()}
	default:
		return fieldShape{fd}
	}
}

// Bool implements document.Shape.
func (messageShape) Bool() bool { return false }

// Field implements document.Shape.
func (fieldShape) Field(string) document.Shape { return nil }

// Bool implements document.Shape.
func (s fieldShape) Bool() bool { return s.of.Kind() == protoreflect.BoolKind }

// read sets the value of the item to node n. m is nil if the model is unknown; then
// no notation is lenient.
func (it *Item) read(budget *document.Budget, n *yaml.Node, m *models.Model) error {
	var shape document.Shape
	if m != nil {
		shape = shapeOf(m)
	}
	value, warnings, err := budget.JSONOf(n, shape)
	it.Value = value
	for _, w := range warnings {
		it.Warnings = append(it.Warnings, w)
	}
	return err
}

// modelIn returns the model of the key in a pair, or nil.
func (form Form) modelIn(pair []document.Field) *models.Model {
	for _, f := range pair {
		if f.Name != "key" {
			continue
		}
		key := document.Resolve(f.Value).Value
		m, _, _ := form.models.ByKey(key[max(0, strings.Index(key, "config/")):])
		return m
	}
	return nil
}
