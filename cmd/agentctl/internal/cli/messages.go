package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// toProto returns a message in the protobuf text format, on one line. A list has one line
// per message.
func (a *app) toProto(v any) (string, error) {
	out, err := a.textsOf(v, false)
	return strings.Join(out, "\n"), err
}

// toProtoMulti is toProto with one line per field, and an empty line between messages.
func (a *app) toProtoMulti(v any) (string, error) {
	out, err := a.textsOf(v, true)
	return strings.Join(out, "\n"), err
}

// textsOf returns the text of each message in v.
func (a *app) textsOf(v any, multiline bool) (out []string, err error) {
	ms, err := a.messagesOf(v)
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
func (a *app) messagesOf(v any) ([]proto.Message, error) {
	switch v := v.(type) {
	case *wire.Message:
		if v == nil {
			return nil, nil
		}
		return a.messageNamed(v.ProtoMsgName, v.ProtoMsgData)
	case dumpRow:
		return a.messagesOf(v.Value)
	case wire.KeyValue:
		return a.messagesOf(v.Value)
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
		more, err := a.messagesOf(list.Index(i).Interface())
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// messageNamed decodes a message by the name of its type.
func (a *app) messageNamed(name string, data json.RawMessage) ([]proto.Message, error) {
	kind, err := a.types.named(name)
	if err != nil {
		return nil, err
	}
	m := kind.New().Interface()
	return []proto.Message{m}, unmarshaler().Unmarshal(data, m)
}

// typesOfAgent are the types of messages that are linked into agentctl, and those of models
// that only the agent has.
type typesOfAgent struct {
	get func(path string, into any) error // queries the agent
	// Types made from the agent's .proto files, by full name. Each is asked for once per
	// command.
	dynamic map[string]protoreflect.MessageType
}

// named returns a type by the full name of its message.
func (t *typesOfAgent) named(name string) (protoreflect.MessageType, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByURL(name)
	if err == nil {
		return kind, nil
	}
	if kind, ok := t.dynamic[name]; ok {
		return kind, nil
	}
	made, unknown := t.ask(name)
	if unknown != nil {
		return nil, fmt.Errorf("type %q: %w", name, unknown)
	}
	if t.dynamic == nil {
		t.dynamic = map[string]protoreflect.MessageType{}
	}
	t.dynamic[name] = made
	return made, nil
}

// ask makes a type from the files that the agent has of the model with this message.
func (t *typesOfAgent) ask(name string) (protoreflect.MessageType, error) {
	var known catalogue
	if err := t.get("/info/models", &known); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(known, func(m wire.Model) bool { return m.ProtoName == name })
	if at < 0 {
		return nil, protoregistry.NotFound
	}
	var one wire.Model
	if err := t.get("/info/models/"+known[at].Name, &one); err != nil {
		return nil, err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(one.Files, &set); err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, err
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, err
	}
	message, ok := found.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, protoregistry.NotFound
	}
	return dynamicpb.NewMessageType(message), nil
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
