package grpc

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
)

// Parts of the memory of a decoded message, in bytes.
const (
	bytesOfMessage = 56 // without its fields
	bytesOfField   = 16 // declared in the message, set or not
	bytesOfElement = 24 // set, such as a pointer in a slice that grew
)

// Messages that are nested deeper than maxDepth are not looked into. They count as if they were all empty.
const (
	maxDepth     = 64
	bytesOfEmpty = 64 // for each byte: an empty message has two
)

// costOf returns about the memory, in bytes, that a message takes once it is decoded, together with the
// value of each google.protobuf.Any of a model in it. An empty message has two bytes on the wire
// and takes a hundred, so the size on the wire alone says little. Decoding refuses what is malformed;
// its cost is that of the part before.
func costOf(known *models.Registry, message protoreflect.MessageDescriptor, wire []byte) int64 {
	return messageCost(known, message, wire, maxDepth)
}

func messageCost(known *models.Registry, message protoreflect.MessageDescriptor, wire []byte, depth int) int64 {
	if depth == 0 {
		return bytesOfEmpty * int64(len(wire))
	}
	cost := bytesOfMessage + bytesOfField*int64(message.Fields().Len())
	var packed struct{ typeURL, value []byte } // of an Any
	for len(wire) > 0 {
		number, kind, tag := protowire.ConsumeTag(wire)
		if tag < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(number, kind, wire[tag:])
		if size < 0 {
			break
		}
		value := wire[tag : tag+size]
		wire = wire[tag+size:]
		cost += bytesOfElement
		field := message.Fields().ByNumber(number)
		if kind != protowire.BytesType || field == nil {
			cost += int64(size)
			continue
		}
		content, _ := protowire.ConsumeBytes(value)
		switch {
		case field.Message() != nil: // also an entry of a map
			cost += messageCost(known, field.Message(), content, depth-1)
		case field.Kind() == protoreflect.StringKind || field.Kind() == protoreflect.BytesKind:
			cost += int64(len(content))
		default: // packed numbers
			cost += 8 * int64(len(content))
		}
		switch field.FullName() {
		case "google.protobuf.Any.type_url":
			packed.typeURL = content
		case "google.protobuf.Any.value":
			packed.value = content
		}
	}
	if model, ok := known.ByMessage(messageName(string(packed.typeURL))); ok {
		cost += messageCost(known, model.New().ProtoReflect().Descriptor(), packed.value, depth-1)
	}
	return cost
}

// messageName returns the name after the last slash of the type of an Any.
func messageName(url string) protoreflect.FullName {
	return protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:])
}
