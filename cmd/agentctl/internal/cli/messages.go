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

// toProto is a message in the text format, on one line; of a list, a line for each.
func toProto(v any) (string, error) {
	out, err := textsOf(v, false)
	return strings.Join(out, "\n"), err
}

// toProtoMulti is toProto with a field a line, and an empty line between messages.
func toProtoMulti(v any) (string, error) {
	out, err := textsOf(v, true)
	return strings.Join(out, "\n"), err
}

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

// messagesOf are the messages that v stands for: values, their states, or lists of
// such.
func messagesOf(v any) ([]proto.Message, error) {
	switch v := v.(type) {
	case *wire.Message:
		if v == nil {
			return nil, nil
		}
		return messageNamed(v.ProtoMsgName, v.ProtoMsgData)
	case dumped:
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
		return nil, fmt.Errorf("%T is no message: expected a value or its state", v)
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

func messageNamed(name string, data json.RawMessage) ([]proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByURL(name)
	if err != nil {
		return nil, err
	}
	m := kind.New().Interface()
	return []proto.Message{m}, lenient().Unmarshal(data, m)
}

// messageLike reads what has the same form as m when it is JSON.
func messageLike(m proto.Message, v any) ([]proto.Message, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return []proto.Message{m}, lenient().Unmarshal(data, m)
}

// lenient reads what newer agents answer, too.
func lenient() protojson.UnmarshalOptions { return protojson.UnmarshalOptions{DiscardUnknown: true} }
