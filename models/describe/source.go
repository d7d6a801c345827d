package describe

import (
	"context"
	"fmt"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/keyplane/keyplane/models"
)

// Check returns an error if the Source of a model does not declare its message.
func Check(m *models.Model) error {
	if m.Source() == "" {
		return nil
	}
	f, err := compiled(m)
	if err != nil {
		return err
	}
	message := m.New().ProtoReflect().Descriptor()
	if f.FindDescriptorByName(message.FullName()) == nil {
		return fmt.Errorf("model %s: Source: does not declare %s; expected the text of %s", m.Name(), message.FullName(), m.ProtoFile())
	}
	return nil
}

// Files is [models.Model.Files], with the comments of the Source of m.
func Files(m *models.Model) (*descriptorpb.FileDescriptorSet, error) {
	out := m.Files()
	if m.Source() == "" {
		return out, nil
	}
	f, err := compiled(m)
	if err != nil {
		return nil, err
	}
	// The file of the message is the last one. The generated one stays: clients get the fields that the program has.
	out.File[len(out.File)-1].SourceCodeInfo = protoutil.ProtoFromFileDescriptor(f).GetSourceCodeInfo()
	return out, nil
}

// compiled returns the .proto file of a model, from its Source. The files that it imports are part of the program.
func compiled(m *models.Model) (linker.File, error) {
	compiler := protocompile.Compiler{
		Resolver: protocompile.ResolverFunc(func(path string) (protocompile.SearchResult, error) {
			if path == m.ProtoFile() {
				return protocompile.SearchResult{Source: strings.NewReader(m.Source())}, nil
			}
			d, err := protoregistry.GlobalFiles.FindFileByPath(path)
			return protocompile.SearchResult{Desc: d}, err
		}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), m.ProtoFile())
	if err != nil {
		return nil, fmt.Errorf("model %s: Source: %w", m.Name(), err)
	}
	return files[0], nil
}
