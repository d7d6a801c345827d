package grpc

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// meta is ligato.generic.MetaService.
type meta struct {
	generic.UnimplementedMetaServiceServer
	*service
}

// KnownModels lists the models, sorted by name. Clients make keys from the template and find
// the message in the file. They take a model with an empty template for a singleton.
func (m *meta) KnownModels(_ context.Context, req *generic.KnownModelsRequest) (*generic.KnownModelsResponse, error) {
	out := &generic.KnownModelsResponse{}
	for _, one := range m.models().All() {
		if class := req.GetClass(); class != "" && class != one.Class {
			continue
		}
		out.KnownModels = append(out.KnownModels, &generic.ModelDetail{
			Spec:      &generic.ModelSpec{Module: one.Module, Version: one.Version, Type: one.Type, Class: one.Class},
			ProtoName: one.ProtoName(),
			Options: []*generic.ModelDetail_Option{
				{Key: "nameTemplate", Values: []string{one.NameTemplate()}},
				{Key: "protoFile", Values: []string{one.ProtoFile()}},
			},
		})
	}
	return out, nil
}

// ProtoFileDescriptor returns a file that declares the message of a model, and the files that
// it needs, each after its own imports.
func (m *meta) ProtoFileDescriptor(_ context.Context, req *generic.ProtoFileDescriptorRequest) (*generic.ProtoFileDescriptorResponse, error) {
	path := req.GetFullProtoFileName()
	all := m.models().All()
	at := slices.IndexFunc(all, func(m *models.Model) bool { return m.ProtoFile() == path })
	if at < 0 {
		return nil, status.Errorf(codes.NotFound, "full_proto_file_name: no model is declared in %.200q; KnownModels lists the files", path)
	}
	files := all[at].Files().GetFile()
	last := len(files) - 1
	return &generic.ProtoFileDescriptorResponse{
		FileDescriptor:        files[last],
		FileImportDescriptors: &descriptorpb.FileDescriptorSet{File: files[:last]},
	}, nil
}
