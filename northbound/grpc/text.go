package grpc

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec with this name
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A codec encodes all messages of a server. Texts in messages must be UTF-8. But an error may quote the name of a file,
// and Linux accepts any bytes as the name of an interface. Such a text would end the stream of each client.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	data, err := c.CodecV2.Marshal(v)
	if m, ok := v.(proto.Message); ok && err != nil {
		return c.CodecV2.Marshal(inUTF8(m))
	}
	return data, err
}

// marshal encodes a message within another one.
func marshal(m proto.Message) ([]byte, error) {
	data, err := proto.Marshal(m)
	if err != nil {
		return proto.Marshal(inUTF8(m))
	}
	return data, nil
}

// inUTF8 returns a copy of a message with U+FFFD in place of bytes that are not UTF-8.
func inUTF8(m proto.Message) proto.Message {
	m = proto.Clone(m)
	_ = protorange.Range(m.ProtoReflect(), func(path protopath.Values) error { // no step fails
		last := path.Index(-1)
		text, ok := last.Value.Interface().(string)
		if !ok || utf8.ValidString(text) {
			return nil
		}
		valid, within := protoreflect.ValueOfString(textOf(text)), path.Index(-2).Value
		switch last.Step.Kind() {
		case protopath.FieldAccessStep:
			within.Message().Set(last.Step.FieldDescriptor(), valid)
		case protopath.ListIndexStep:
			within.List().Set(last.Step.ListIndex(), valid)
		case protopath.MapIndexStep:
			within.Map().Set(last.Step.MapIndex(), valid)
		default: // other steps lead to no text
		}
		return nil
	})
	return m
}

// textOf is inUTF8 for a text.
func textOf(text string) string { return strings.ToValidUTF8(text, string(utf8.RuneError)) }
