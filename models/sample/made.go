package sample

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato"
)

// mostDepth is the maximum nesting of messages in a made value. A message may contain itself.
const mostDepth = 4

// made returns a value of m with every field set: the first member of each oneof, one element of
// each list and map.
func made(m *models.Model) proto.Message {
	v := m.New()
	fill(v.ProtoReflect(), 1)
	return v
}

// fill sets the fields of a message at a depth.
func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if of := fd.ContainingOneof(); of != nil && of.Fields().Get(0) != fd {
			continue // at most one member can be set
		}
		if fd.Message() != nil && depth == mostDepth || deprecated(fd) {
			continue
		}
		set(m, fd, depth)
	}
}

// deprecated reports whether the .proto file advises against the field.
func deprecated(fd protoreflect.FieldDescriptor) bool {
	options, ok := fd.Options().(*descriptorpb.FieldOptions)
	return ok && options.GetDeprecated()
}

// set sets a field of m.
func set(m protoreflect.Message, fd protoreflect.FieldDescriptor, depth int) {
	switch {
	case fd.IsMap():
		values := m.Mutable(fd).Map()
		one := values.NewValue()
		if fd.MapValue().Message() != nil {
			fill(one.Message(), depth+1)
		} else {
			one = scalar(fd.MapValue())
		}
		values.Set(scalar(fd.MapKey()).MapKey(), one)
	case fd.IsList() && fd.Message() != nil:
		fill(m.Mutable(fd).List().AppendMutable().Message(), depth+1)
	case fd.IsList():
		m.Mutable(fd).List().Append(scalar(fd))
	case fd.Message() != nil:
		fill(m.Mutable(fd).Message(), depth+1)
	default:
		m.Set(fd, scalar(fd))
	}
}

// scalar returns a value of a field, or of an element of it, that is no message.
func scalar(fd protoreflect.FieldDescriptor) protoreflect.Value {
	n := number(fd)
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		values := fd.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(min(1, values.Len()-1)).Number())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(words(fd))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(fd.Name()))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(1)
	default:
		return protoreflect.ValueOfFloat64(1)
	}
}

// number returns the smallest number above zero that the hint of the field allows. It fits the
// type of the field if its hint does.
func number(fd protoreflect.FieldDescriptor) int64 {
	const small = 1
	return max(small, hints(fd).GetIntRange().GetMinimum())
}

// hints returns the hints of a field in the .proto file; they are empty if it has none.
func hints(fd protoreflect.FieldDescriptor) *ligato.LigatoOptions {
	hints, _ := proto.GetExtension(fd.Options(), ligato.E_LigatoOptions).(*ligato.LigatoOptions)
	return hints
}

// words returns a text for a field: an address where the hint says so, or else the name of the
// field. Addresses are of the networks for documentation, RFC 5737 and RFC 3849.
func words(fd protoreflect.FieldDescriptor) string {
	switch hints(fd).GetType() {
	case ligato.LigatoOptions_IP, ligato.LigatoOptions_IPV4, ligato.LigatoOptions_IP_OPTIONAL_MASK, ligato.LigatoOptions_IPV4_OPTIONAL_MASK:
		return "192.0.2.1"
	case ligato.LigatoOptions_IP_WITH_MASK, ligato.LigatoOptions_IPV4_WITH_MASK:
		return "192.0.2.0/24"
	case ligato.LigatoOptions_IPV6, ligato.LigatoOptions_IPV6_OPTIONAL_MASK:
		return "2001:db8::1"
	case ligato.LigatoOptions_IPV6_WITH_MASK:
		return "2001:db8::/64"
	default:
		return string(fd.Name())
	}
}
