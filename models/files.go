package models

import (
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Files returns the .proto file that declares the message of m, as the last one of the list, and
// all files that it needs, each after its own imports. With them a client in any language can
// decode values of a model that it was not built with. The caller owns the result.
func (m *Model) Files() *descriptorpb.FileDescriptorSet {
	file := m.message().Descriptor().ParentFile()
	all := withImports(file, map[string]bool{})
	return &descriptorpb.FileDescriptorSet{File: all}
}

// withImports returns the imports of a file that are not seen yet, and then the file.
func withImports(file protoreflect.FileDescriptor, seen map[string]bool) (out []*descriptorpb.FileDescriptorProto) {
	seen[file.Path()] = true
	for i := range file.Imports().Len() {
		if one := file.Imports().Get(i).FileDescriptor; !seen[one.Path()] {
			out = append(out, withImports(one, seen)...)
		}
	}
	return append(out, protodesc.ToFileDescriptorProto(file))
}
