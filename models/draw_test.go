package models

import (
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"
)

// drawModel draws one of the models.
func drawModel(t *rapid.T) *Model { return rapid.SampledFrom(BuiltIn().All()).Draw(t, "model") }

// drawValue draws a value of m with any of its fields set, sensibly or not.
func drawValue(t *rapid.T, m *Model) proto.Message {
	v := m.New()
	drawFields(t, v.ProtoReflect())
	return v
}

func drawFields(t *rapid.T, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !rapid.Bool().Draw(t, string(fd.Name())+" set") {
			continue
		}
		if fd.IsList() {
			list := m.NewField(fd).List()
			for range rapid.IntRange(1, 3).Draw(t, "length") {
				list.Append(drawSingle(t, fd, list.NewElement))
			}
			m.Set(fd, protoreflect.ValueOfList(list))
			continue
		}
		m.Set(fd, drawSingle(t, fd, func() protoreflect.Value { return m.NewField(fd) }))
	}
}

func drawSingle(t *rapid.T, fd protoreflect.FieldDescriptor, fresh func() protoreflect.Value) protoreflect.Value {
	name := string(fd.Name())
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, name))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(drawText(t, name))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(rapid.Int32().Draw(t, name))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32().Draw(t, name))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64().Draw(t, name))
	case protoreflect.EnumKind:
		known := int32(fd.Enum().Values().Len())
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.Int32Range(0, known).Draw(t, name)))
	case protoreflect.MessageKind:
		v := fresh()
		drawFields(t, v.Message())
		return v
	default:
		panic("no values of kind " + fd.Kind().String())
	}
}

func drawText(t *rapid.T, name string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "veth1", "a/b", "a//b", "/", ".", "..", "../x", "x/../..", "tap-0", "GigabitEthernet0/8/0",
			"10.1.3.7", "10.1.3.7/24", "0.0.0.0/0", "10.1.3.7/33", "010.1.3.7/24", "::ffff:10.1.3.7/120",
			"fd00::1", "fd00::1/64", "::/0", "fe80::1%eth0/64", "alloc:net1", "alloc:net1/if1", "alloc:net1/if1/GW",
			"62:89:C6:A3:6D:5C", `quo"ted`, "<b>", invalid,
		}),
		rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return !unicode.IsControl(r) })),
	).Draw(t, name)
}
