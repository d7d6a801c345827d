package describe

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
	protofiles "github.com/keyplane/keyplane/proto"
)

// comments returns the comments of the .proto files by the full name of what they are about: a
// message, a field, an enumeration or one of its values. The files are part of the program, and are
// compiled at the first use, which takes some 50 ms.
var comments = sync.OnceValues(func() (map[protoreflect.FullName]string, error) {
	paths, err := sources()
	if err != nil {
		return nil, err
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: func(path string) (io.ReadCloser, error) { return protofiles.Sources.Open(path) }}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), paths...)
	if err != nil {
		return nil, fmt.Errorf("reading the .proto files: %w", err)
	}
	out := map[protoreflect.FullName]string{}
	for _, f := range files {
		enums(out, f, f.Enums())
		messages(out, f, f.Messages())
	}
	return out, nil
})

// sources returns the paths of the .proto files.
func sources() (out []string, err error) {
	err = fs.WalkDir(protofiles.Sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	return out, err
}

// messages adds the comments of messages, and of all in them.
func messages(out map[protoreflect.FullName]string, f protoreflect.FileDescriptor, all protoreflect.MessageDescriptors) {
	for i := range all.Len() {
		m := all.Get(i)
		add(out, f, m)
		for j := range m.Fields().Len() {
			add(out, f, m.Fields().Get(j))
		}
		enums(out, f, m.Enums())
		messages(out, f, m.Messages())
	}
}

// enums adds the comments of enumerations and their values.
func enums(out map[protoreflect.FullName]string, f protoreflect.FileDescriptor, all protoreflect.EnumDescriptors) {
	for i := range all.Len() {
		e := all.Get(i)
		add(out, f, e)
		for j := range e.Values().Len() {
			add(out, f, e.Values().Get(j))
		}
	}
}

// add adds a comment.
func add(out map[protoreflect.FullName]string, f protoreflect.FileDescriptor, d protoreflect.Descriptor) {
	if text := textIn(f, d); text != "" {
		out[d.FullName()] = text
	}
}

// textIn returns the comment on a descriptor as one line, if its file has comments.
func textIn(f protoreflect.FileDescriptor, d protoreflect.Descriptor) string {
	return strings.Join(strings.Fields(f.SourceLocations().ByDescriptor(d).LeadingComments), " ")
}

// Texts returns a function that returns the comment on a message, a field, an enumeration or one of its values,
// or "". It knows the .proto files of this module, and those of the Source of models. Descriptors that another
// program has sent may have comments of their own. A Source with mistakes has no comments; Check returns them.
func Texts(all ...*models.Model) func(protoreflect.Descriptor) string {
	known, _ := comments() // a test compiles the files, so there is no error
	own := map[protoreflect.FullName]string{}
	for _, m := range all {
		if m.Source() == "" {
			continue
		}
		if f, err := compiled(m); err == nil {
			enums(own, f, f.Enums())
			messages(own, f, f.Messages())
		}
	}
	return func(d protoreflect.Descriptor) string {
		return cmp.Or(known[d.FullName()], own[d.FullName()], textIn(d.ParentFile(), d))
	}
}
