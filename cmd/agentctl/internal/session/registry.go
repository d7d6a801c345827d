package session

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// Registry returns the built-in models, and those that only the agent has: it learns their keys
// and messages by gRPC. A foreign model that cannot be made is an error, because its values would
// be missing without a word.
func Registry(ctx context.Context, conn *grpc.ClientConn) (*models.Registry, error) {
	meta := generic.NewMetaServiceClient(conn)
	known, err := meta.KnownModels(ctx, &generic.KnownModelsRequest{Class: ConfigClass})
	if err != nil {
		return nil, err
	}
	all := models.BuiltIn()
	for _, detail := range known.GetKnownModels() {
		spec := detail.GetSpec()
		name := spec.GetModule() + "." + spec.GetType()
		if _, ok := all.ByName(name); ok {
			continue
		}
		foreign, err := foreignModel(ctx, meta, detail)
		if err == nil {
			all, err = all.With(foreign)
		}
		if err != nil {
			return nil, fmt.Errorf("model %s of the agent: %w", name, err)
		}
	}
	return all, nil
}

// typeURL is the start of the type of each value on the wire.
const typeURL = "models.ligato.io/"

// Item returns the item of gRPC for a value. A nil message asks for its removal.
func Item(r *models.Registry, key string, v proto.Message) (*generic.Item, error) {
	m, name, ok := r.ByKey(key)
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, models.ErrNoModel)
	}
	item := &generic.Item{Id: &generic.Item_ID{Model: m.Name(), Name: name}}
	if v == nil {
		return item, nil
	}
	data, err := proto.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	item.Data = &generic.Data{Union: &generic.Data_Any{Any: &anypb.Any{TypeUrl: typeURL + m.ProtoName(), Value: data}}}
	return item, nil
}

// foreignModel makes a model from its description.
func foreignModel(ctx context.Context, meta generic.MetaServiceClient, detail *generic.ModelDetail) (*models.Model, error) {
	answer, err := meta.ProtoFileDescriptor(ctx, &generic.ProtoFileDescriptorRequest{FullProtoFileName: optionOf(detail, "protoFile")})
	if err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{File: append(answer.GetFileImportDescriptors().GetFile(), answer.GetFileDescriptor())}
	message, err := messageIn(set, detail.GetProtoName())
	if err != nil {
		return nil, err
	}
	spec := detail.GetSpec()
	return models.DefineMessage(models.Definition{
		Module: spec.GetModule(), Version: spec.GetVersion(), Type: spec.GetType(), NameTemplate: optionOf(detail, "nameTemplate"),
	}, message), nil
}

// optionOf returns an option of a model, or an empty text if it is absent.
func optionOf(detail *generic.ModelDetail, key string) string {
	for _, o := range detail.GetOptions() {
		if o.GetKey() == key && len(o.GetValues()) > 0 {
			return o.GetValues()[0]
		}
	}
	return ""
}

// messageIn makes the type of a message by its full name. Each file of the set comes after its
// own imports.
func messageIn(set *descriptorpb.FileDescriptorSet, name string) (protoreflect.MessageType, error) {
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, err
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, err
	}
	message, ok := found.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s: %T; expected a message", name, found)
	}
	return dynamicpb.NewMessageType(message), nil
}
