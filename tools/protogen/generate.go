package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

// generate returns the generated Go files by path below root.
func generate(ctx context.Context, root string) (map[string]string, error) {
	paths, err := find(root, ".proto")
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no .proto files below %q", root)
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, paths...)
	if err != nil {
		return nil, err
	}
	req, want := request(paths, files), map[string]string{}
	for _, plugin := range plugins() {
		made, err := runPlugin(ctx, root, plugin, req)
		if err != nil {
			return nil, err
		}
		maps.Copy(want, made)
	}
	return want, nil
}

// plugins returns the generators, tools of the module that root belongs to: of messages,
// and of services. A file without a service makes no file of the second.
func plugins() []string { return []string{"protoc-gen-go", "protoc-gen-go-grpc"} }

// find lists the files below root that end in suffix, in lexical order.
func find(root, suffix string) ([]string, error) {
	var paths []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, suffix) {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// request asks for the Go code of all paths. A file comes after those it imports.
func request(paths []string, files linker.Files) *pluginpb.CodeGeneratorRequest {
	req := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: paths,
		Parameter:      proto.String("paths=source_relative"),
	}
	seen := map[string]bool{}
	var add func(fd protoreflect.FileDescriptor)
	add = func(fd protoreflect.FileDescriptor) {
		if seen[fd.Path()] {
			return
		}
		seen[fd.Path()] = true
		for i := range fd.Imports().Len() {
			add(fd.Imports().Get(i).FileDescriptor)
		}
		req.ProtoFile = append(req.ProtoFile, protoutil.ProtoFromFileDescriptor(fd))
	}
	for _, fd := range files {
		add(fd)
	}
	return req
}

// runPlugin runs a generator of the module that root belongs to.
func runPlugin(ctx context.Context, root, plugin string, req *pluginpb.CodeGeneratorRequest) (map[string]string, error) {
	in, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin) //nolint:gosec // one of plugins
	cmd.Dir, cmd.Stdin, cmd.Stderr = filepath.Clean(root), bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool %s: %w", plugin, err)
	}
	var res pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &res); err != nil {
		return nil, fmt.Errorf("answer of %s: %w", plugin, err)
	}
	if res.Error != nil {
		return nil, errors.New(res.GetError())
	}
	want := map[string]string{}
	for _, f := range res.File {
		want[f.GetName()] = f.GetContent()
	}
	return want, nil
}
