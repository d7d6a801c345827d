package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// toProto returns a message in the protobuf text format, on one line. A list has one line
// per message.
func toProto(v any) (string, error) {
	out, err := textsOf(v, false)
	return strings.Join(out, "\n"), err
}

// toProtoMulti is toProto with one line per field, and an empty line between messages.
func toProtoMulti(v any) (string, error) {
	out, err := textsOf(v, true)
	return strings.Join(out, "\n"), err
}

// textsOf returns the text of each message in v.
func textsOf(v any, multiline bool) (out []string, err error) {
	ms, err := messagesOf(v)
	for _, m := range ms {
		text, err := models.Text(m, multiline)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, err
}

// messagesOf returns the protobuf messages that v contains. v is a value, the state of a
// value, or a list of those.
func messagesOf(v any) ([]proto.Message, error) {
	switch v := v.(type) {
	case *wire.Message:
		if v == nil {
			return nil, nil
		}
		return messageNamed(v.ProtoMsgName, v.ProtoMsgData)
	case dumpRow:
		return messagesOf(v.Value)
	case wire.KeyValue:
		return messagesOf(v.Value)
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
		more, err := messagesOf(list.Index(i).Interface())
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// messageNamed decodes a message by the name of its type. The type must be linked into
// agentctl.
func messageNamed(name string, data json.RawMessage) ([]proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByURL(name)
	if err != nil {
		return nil, err
	}
	m := kind.New().Interface()
	return []proto.Message{m}, unmarshaler().Unmarshal(data, m)
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
