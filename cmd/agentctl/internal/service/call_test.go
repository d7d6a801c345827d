package service

import (
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// The time of a call may end at the agent before it ends here. A stream that has answered has ended then.
func TestTheAgentEndsAStreamInTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		if err := s.SendMsg(&generic.SubscribeResponse{}); err != nil {
			return err
		}
		return status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	}))
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	methods := generic.File_ligato_generic_manager_proto.Services().ByName("ManagerService").Methods()
	answers := 0
	err = invoke(t.Context(), conn, methods.ByName("Subscribe"), nil, func(*dynamicpb.Message) error { answers++; return nil })
	if err != nil || answers != 1 {
		t.Errorf("%d answers, %v", answers, err)
	}
}
