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
// its cost is that of the part before. It stops counting beyond most, because counting what is refused
// anyway takes time, too.
func costOf(known *models.Registry, message protoreflect.MessageDescriptor, wire []byte, most int64) int64 {
	c := counter{known: known, most: most}
	c.message(message, wire, maxDepth)
	return c.cost
}

// A counter adds up the cost of a message.
type counter struct {
	known *models.Registry
	most  int64 // more is not counted
	cost  int64
}

func (c *counter) message(message protoreflect.MessageDescriptor, wire []byte, depth int) {
	if depth == 0 {
		c.cost += bytesOfEmpty * int64(len(wire))
		return
	}
	c.cost += bytesOfMessage + bytesOfField*int64(message.Fields().Len())
	var packed struct{ typeURL, value []byte } // of an Any
	for len(wire) > 0 && c.cost <= c.most {
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
		c.cost += bytesOfElement
		field := message.Fields().ByNumber(number)
		if kind != protowire.BytesType || field == nil {
			c.cost += int64(size)
			continue
		}
		content, _ := protowire.ConsumeBytes(value)
		switch {
		case field.Message() != nil: // also an entry of a map
			c.message(field.Message(), content, depth-1)
		case field.Kind() == protoreflect.StringKind || field.Kind() == protoreflect.BytesKind:
			c.cost += int64(len(content))
		default: // packed numbers
			c.cost += 8 * int64(len(content))
		}
		switch field.FullName() {
		case "google.protobuf.Any.type_url":
			packed.typeURL = content
		case "google.protobuf.Any.value":
			packed.value = content
		}
	}
	if model, ok := c.known.ByMessage(messageName(string(packed.typeURL))); ok {
		c.message(model.New().ProtoReflect().Descriptor(), packed.value, depth-1)
	}
}

// messageName returns the name after the last slash of the type of an Any.
func messageName(url string) protoreflect.FullName {
	return protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:])
}
