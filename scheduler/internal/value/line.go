package value

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/models"
)

const (
	// maxValueText is the maximum length of a value, in bytes. Longer texts are cut.
	maxValueText = 16 << 10
	// largeValue is the size of an encoded value, in bytes, above which only beginnings are rendered. The
	// whole text of 100,000 addresses would take ten megabytes for a moment.
	largeValue = 64 << 10
	// mostElements is the number of elements of a list that are rendered of a large value. Most of them would
	// be cut.
	mostElements = 1000
)

// Line renders the message on one line, with stable spacing and without secrets.
func Line(m proto.Message) string {
	if m == nil {
		return "<NIL>"
	}
	size := proto.Size(m)
	if size > largeValue {
		m = beginnings(m)
	}
	text, err := models.Text(models.Redacted(m), false)
	switch {
	case err != nil:
		return "<" + printable.Line(err.Error()) + ">"
	case len(text) == 0:
		return "<EMPTY>"
	case size > largeValue:
		return fmt.Sprintf("{ %s… (a value of %d bytes) }", printable.Line(printable.Beginning(text, maxValueText)), size)
	}
	return "{ " + printable.Line(printable.Cut(text, maxValueText)) + " }"
}

// beginnings returns a message with the beginnings of the lists and texts of m. It shares the rest with m.
func beginnings(m proto.Message) proto.Message {
	out := m.ProtoReflect().New()
	copyBeginnings(out, m.ProtoReflect())
	return out.Interface()
}

func copyBeginnings(to, from protoreflect.Message) {
	from.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsList():
			copyElements(to.Mutable(field).List(), v.List())
		case field.IsMap():
			to.Set(field, v)
		case field.Message() != nil:
			copyBeginnings(to.Mutable(field).Message(), v.Message())
		case field.Kind() == protoreflect.StringKind:
			to.Set(field, protoreflect.ValueOfString(printable.Beginning(v.String(), maxValueText)))
		default:
			to.Set(field, v)
		}
		return true
	})
}

func copyElements(to, from protoreflect.List) {
	for i := range min(from.Len(), mostElements) {
		one := from.Get(i)
		if m, is := one.Interface().(protoreflect.Message); is {
			copyBeginnings(to.AppendMutable().Message(), m)
		} else {
			to.Append(one)
		}
	}
}
