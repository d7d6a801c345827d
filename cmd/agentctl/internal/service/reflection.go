package service

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// A reflection asks a gRPC server for its services and their .proto files (gRPC Server Reflection
// Protocol). It is used by one goroutine.
type reflection struct{ stream grpc.ClientStream }

// protocols are the names of the reflection service, newest first. Their messages have the same
// form, so that those of v1 serve both: vpp-agent 3.5 has v1alpha only.
func protocols() []string {
	return []string{"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}
}

// reflect opens a reflection by the first protocol that the server has, and lists its services.
// The reflection ends with ctx.
func reflect(ctx context.Context, conn *grpc.ClientConn) (*reflection, []string, error) {
	var last error
	for _, method := range protocols() {
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		if err != nil {
			return nil, nil, err
		}
		r := &reflection{stream}
		answer, err := r.ask(&pb.ServerReflectionRequest{MessageRequest: &pb.ServerReflectionRequest_ListServices{ListServices: "*"}})
		if err == nil {
			var names []string
			for _, s := range answer.GetListServicesResponse().GetService() {
				names = append(names, s.GetName())
			}
			return r, names, nil
		}
		if last = err; status.Code(err) != codes.Unimplemented {
			break
		}
	}
	return nil, nil, last
}

// ask sends a request and returns its answer.
func (r *reflection) ask(q *pb.ServerReflectionRequest) (*pb.ServerReflectionResponse, error) {
	// The error of a stream that the server has ended is that of the answer.
	sent := r.stream.SendMsg(q)
	answer := &pb.ServerReflectionResponse{}
	if err := r.stream.RecvMsg(answer); err != nil {
		return nil, err
	}
	if sent != nil {
		return nil, sent
	}
	if failed := answer.GetErrorResponse(); failed != nil {
		return nil, errors.New(failed.GetErrorMessage())
	}
	return answer, nil
}

// service returns the description of a service, with all messages that it needs.
func (r *reflection) service(name string) (protoreflect.ServiceDescriptor, *protoregistry.Files, error) {
	files, err := r.files(name)
	if err != nil {
		return nil, nil, fmt.Errorf("service %s: %w", name, err)
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, nil, fmt.Errorf("service %s: %w", name, err)
	}
	service, ok := found.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil, nil, fmt.Errorf("%s is no service, but a %T", name, found)
	}
	return service, files, nil
}

// files returns the file that declares a symbol, such as a service or a message, and the files that it
// needs.
func (r *reflection) files(symbol string) (*protoregistry.Files, error) {
	set := &descriptorpb.FileDescriptorSet{}
	q := &pb.ServerReflectionRequest{MessageRequest: &pb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol}}
	if err := r.collect(q, map[string]bool{}, set); err != nil {
		return nil, err
	}
	return protodesc.NewFiles(set)
}

// collect adds the files of an answer to set, each after the files that it imports. The server may
// send imports unasked, or not.
func (r *reflection) collect(q *pb.ServerReflectionRequest, seen map[string]bool, set *descriptorpb.FileDescriptorSet) error {
	answer, err := r.ask(q)
	if err != nil {
		return err
	}
	for _, text := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
		file := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(text, file); err != nil {
			return err
		}
		if seen[file.GetName()] {
			continue
		}
		seen[file.GetName()] = true
		for _, needed := range file.GetDependency() {
			if seen[needed] {
				continue
			}
			q := &pb.ServerReflectionRequest{MessageRequest: &pb.ServerReflectionRequest_FileByFilename{FileByFilename: needed}}
			if err := r.collect(q, seen, set); err != nil {
				return err
			}
		}
		set.File = append(set.File, file)
	}
	return nil
}
