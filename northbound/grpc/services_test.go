package grpc_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/northbound/grpc"
)

// own is a service of a program that has an agent.
type own struct {
	testgrpc.UnimplementedTestServiceServer
}

// EmptyCall implements testgrpc.TestServiceServer.
func (own) EmptyCall(context.Context, *testgrpc.Empty) (*testgrpc.Empty, error) {
	return &testgrpc.Empty{}, nil
}

// A program's own services have the bounds and rights of the agent's. A method that does not say that it changes
// nothing is refused where everybody may only read, and else logged.
func TestOwnServices(t *testing.T) {
	for name, opened := range map[string]bool{grpc.Read: false, grpc.Write: true} {
		w := newWorld(t, nil)
		var log bytes.Buffer
		w.log = slog.New(slog.NewTextHandler(&log, nil))
		w.more.Services = []func(rpc.ServiceRegistrar){func(to rpc.ServiceRegistrar) { testgrpc.RegisterTestServiceServer(to, own{}) }}
		c := testgrpc.NewTestServiceClient(plain(t, w.serve(t, grpc.Config{Address: "127.0.0.1:0", Unauthenticated: name})))
		_, err := c.EmptyCall(t.Context(), &testgrpc.Empty{})
		if opened && err != nil || !opened && (status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "/grpc.testing.TestService/EmptyCall needs a client certificate")) {
			t.Errorf("where everybody may %s: %v", name, err)
		}
		if told := strings.Contains(log.String(), "request=/grpc.testing.TestService/EmptyCall"); told != opened {
			t.Errorf("where everybody may %s, the log is %s", name, log.String())
		}
	}
}
