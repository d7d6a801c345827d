package session

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// foreignMeta describes one model that agentctl was not built with.
type foreignMeta struct {
	generic.UnimplementedMetaServiceServer
	nameTemplate string
}

// shaperFile declares the message of that model.
const shaperFile = `name: "acme/shaper.proto" package: "acme" syntax: "proto3"
	message_type { name: "Shaper"
		field { name: "interface_name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "interfaceName" }
		field { name: "queue" number: 2 type: TYPE_UINT32 label: LABEL_OPTIONAL json_name: "queue" } }`

func (m foreignMeta) KnownModels(context.Context, *generic.KnownModelsRequest) (*generic.KnownModelsResponse, error) {
	return &generic.KnownModelsResponse{KnownModels: []*generic.ModelDetail{
		{Spec: &generic.ModelSpec{Module: "linux.l3", Version: "v2", Type: "route", Class: "config"}, ProtoName: "ligato.linux.l3.Route"},
		{
			Spec: &generic.ModelSpec{Module: "acme.qos", Version: "v1", Type: "shaper", Class: "config"}, ProtoName: "acme.Shaper",
			Options: []*generic.ModelDetail_Option{{Key: "nameTemplate", Values: []string{m.nameTemplate}}, {Key: "protoFile", Values: []string{"acme/shaper.proto"}}},
		},
	}}, nil
}

func (foreignMeta) ProtoFileDescriptor(context.Context, *generic.ProtoFileDescriptorRequest) (*generic.ProtoFileDescriptorResponse, error) {
	file := &descriptorpb.FileDescriptorProto{}
	err := prototext.Unmarshal([]byte(shaperFile), file)
	return &generic.ProtoFileDescriptorResponse{FileDescriptor: file, FileImportDescriptors: &descriptorpb.FileDescriptorSet{}}, err
}

// connected returns a connection to a server with the service.
func connected(t *testing.T, meta foreignMeta) *grpc.ClientConn {
	t.Helper()
	pipe := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	generic.RegisterMetaServiceServer(server, meta)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(pipe) }()
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		<-ended
	})
	return conn
}

// TestRegistryOfTheAgent reads and writes a document with values of a foreign model.
func TestRegistryOfTheAgent(t *testing.T) {
	all, err := Registry(t.Context(), connected(t, foreignMeta{nameTemplate: "{{.InterfaceName}}/{{.Queue}}"}))
	if err != nil {
		t.Fatal(err)
	}
	const text = "acmeConfig:\n  Shaper_list:\n    - interface_name: tap1\n      queue: 7\n"
	items, errs := structured.For(all).Parse([]byte(text), document.YAML)
	if len(errs) > 0 || len(items) != 1 || items[0].Err != nil || items[0].Key != "config/acme/qos/v1/shaper/tap1/7" {
		t.Fatalf("%+v, %v", items, errs)
	}
	again, err := structured.For(all).Format(items)
	if string(again) != text || err != nil {
		t.Errorf("%q, %v", again, err)
	}
	if _, err := Registry(t.Context(), connected(t, foreignMeta{nameTemplate: "{{.Nothing"})); err == nil || !strings.HasPrefix(err.Error(), "model acme.qos.shaper of the agent: ") {
		t.Errorf("a wrong template: %v", err)
	}
}

func TestExplainGRPC(t *testing.T) {
	withValues := func(code codes.Code, v *kvscheduler.ValueStatus) error {
		st, err := status.New(code, "text").WithDetails(v)
		if err != nil {
			t.Fatal(err)
		}
		return st.Err()
	}
	for want, err := range map[string]error{
		"values failed:\n  k is INVALID: mtu; is wrong":                                          withValues(codes.FailedPrecondition, &kvscheduler.ValueStatus{Key: "k", State: kvscheduler.ValueState_INVALID, Error: "mtu\nis wrong"}),
		"values are still pending:\n  k is PENDING: up":                                          withValues(codes.DeadlineExceeded, &kvscheduler.ValueStatus{Key: "k", State: kvscheduler.ValueState_PENDING, Details: []string{"up"}}),
		"the agent at h:1 does not answer in time: context deadline exceeded":                    status.Error(codes.DeadlineExceeded, "x"),
		"no agent serves gRPC at h:1: is it running, and does its grpc.conf have this endpoint?": status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`),
		"agent at h:1: the agent stops":                                                          status.Error(codes.Unavailable, "the agent stops"),
		"the agent at h:1 lacks this call: unknown":                                              status.Error(codes.Unimplemented, "unknown"),
		"a; b":                          status.Error(codes.InvalidArgument, "a\nb"),
		"interrupted: context canceled": status.Error(codes.Canceled, "x"),
		net.ErrClosed.Error():           net.ErrClosed,
	} {
		s := &Session{settings: settings{grpcName: "h:1"}}
		if got := s.ExplainGRPC(err); got == nil || got.Error() != want {
			t.Errorf("%v: %v; expected %s", err, got, want)
		}
	}
	if err := (&Session{}).ExplainGRPC(nil); err != nil {
		t.Error(err)
	}
}

// TestModelOf makes each built-in model again from its description.
func TestModelOf(t *testing.T) {
	for _, m := range models.BuiltIn().All() {
		described := wire.Model{Name: "acme." + m.Name(), Class: m.Class, KeyPrefix: m.Prefix(), NameTemplate: m.NameTemplate()}
		got := ModelOf(described, m.New().ProtoReflect().Type())
		if m.Class == "config" && (got == m || got.Name() != m.Name() || got.Version != m.Version || got.Prefix() != m.Prefix()) {
			t.Errorf("%s %s is %s %s with the prefix %s; expected %s", m.Name(), m.Version, got.Name(), got.Version, got.Prefix(), m.Prefix())
		}
	}
}
