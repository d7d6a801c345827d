package structured

import (
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured/document"
)

// A messageShape is the shape of a message, or of a field that holds one.
type messageShape struct {
	of protoreflect.MessageDescriptor
}

// A fieldShape is the shape of a field that holds no message.
type fieldShape struct{ of protoreflect.FieldDescriptor }

func shapeOf(m *models.Model) messageShape {
	return messageShape{m.New().ProtoReflect().Descriptor()}
}

// field finds a field by its name in either spelling, or nil.
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

// read makes the value in n the item's, as one of m; nil: its model is not known.
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

// modelIn returns the model of the key among the fields of a pair; nil: of none.
func modelIn(pair []document.Field) *models.Model {
	for _, f := range pair {
		if f.Name != "key" {
			continue
		}
		key := document.Resolve(f.Value).Value
		m, _, _ := models.ByKey(key[max(0, strings.Index(key, "config/")):])
		return m
	}
	return nil
}
