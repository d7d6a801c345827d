package show

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// Types finds types of messages by the full names of the messages, also those that only the
// agent has.
type Types interface {
	MessageType(name string) (protoreflect.MessageType, error)
}

// A Holder is an element of a list that has its protobuf message within, such as a row of a dump.
type Holder interface{ Held() any }

// textProto returns a message in the protobuf text format: on one line, or with one line per
// field and an empty line between messages. A list has the text of each of its messages.
func textProto(types Types, v any, multiline bool) (string, error) {
	var out []string
	ms, err := messagesOf(types, v)
	for _, m := range ms {
		text, err := models.Text(m, multiline)
		if err != nil {
			return "", err
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n"), err
}

// messagesOf returns the protobuf messages that v contains. v is a value, the state of a
// value, or a list of those.
func messagesOf(types Types, v any) ([]proto.Message, error) {
	switch v := v.(type) {
	case *wire.Message:
		if v == nil {
			return nil, nil
		}
		m, err := Message(types, v)
		return []proto.Message{m}, err
	case proto.Message:
		return []proto.Message{v}, nil
	case Holder:
		return messagesOf(types, v.Held())
	case wire.KeyValue:
		return messagesOf(types, v.Value)
	case wire.BaseValueStatus:
		return messageLike(&kvscheduler.BaseValueStatus{}, v)
	case wire.ValueStatus:
		return messageLike(&kvscheduler.ValueStatus{}, v)
	}
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice {
		return nil, fmt.Errorf("%T is no protobuf message: expected a value or its state", v)
	}
	var out []proto.Message
	for i := range list.Len() {
		more, err := messagesOf(types, list.Index(i).Interface())
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// Message decodes a message of the agent. Fields that its type does not have are left out.
func Message(types Types, w *wire.Message) (proto.Message, error) {
	kind, err := types.MessageType(w.ProtoMsgName)
	if err != nil {
		return nil, err
	}
	m := kind.New().Interface()
	return m, unmarshaler().Unmarshal(w.ProtoMsgData, m)
}

// messageLike decodes v into m by way of JSON: their JSON forms have the same fields.
func messageLike(m proto.Message, v any) ([]proto.Message, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return []proto.Message{m}, unmarshaler().Unmarshal(data, m)
}

// unmarshaler ignores unknown fields, which agents of later releases may send.
func unmarshaler() protojson.UnmarshalOptions {
	return protojson.UnmarshalOptions{DiscardUnknown: true}
}
