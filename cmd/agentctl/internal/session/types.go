package session

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// typesOfAgent are the types of messages that are linked into agentctl, and those of models
// that only the agent has.
type typesOfAgent struct {
	get func(path string, into any) error // queries the agent
	// Types made from the agent's .proto files, by full name. Each is asked for once per
	// command.
	dynamic map[string]protoreflect.MessageType
}

// MessageType returns a type by the full name of its message. Only commands within WithAgent may
// call it. It implements show.Types.
func (s *Session) MessageType(name string) (protoreflect.MessageType, error) {
	return s.types.named(name)
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
	var known Catalogue
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
	return messageIn(&set, name)
}
