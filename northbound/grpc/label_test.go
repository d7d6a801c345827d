package grpc_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// A call that names another label is refused before it changes anything; the answer names the
// label of the agent. Clients that name none are served.
func TestLabel(t *testing.T) {
	w := newWorld(t, nil)
	w.more.Label = "vpp1"
	addr := w.serve(t, grpc.Config{Endpoint: "127.0.0.1:0"})
	for _, c := range []struct {
		label, want string
		code        codes.Code
	}{
		{"", "if1", codes.OK},
		{"vpp2", "if1", codes.FailedPrecondition},
		{"vpp1", "if-vpp1 if1", codes.OK},
	} {
		conn := connect(t, addr.String(), append(reach.Naming(c.label), rpc.WithTransportCredentials(insecure.NewCredentials()))...)
		manager := generic.NewManagerServiceClient(conn)
		name := "if1"
		if c.label != "" {
			name = "if-" + c.label
		}
		var header metadata.MD
		_, err := manager.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: put(iface(name))}, rpc.Header(&header))
		if status.Code(err) != c.code {
			t.Errorf("label %q: %v", c.label, err)
		}
		if got := header.Get("keyplane-label"); len(got) != 1 || got[0] != "vpp1" {
			t.Errorf("label %q: the answer is of %q", c.label, got)
		}
		if got := w.names(); got != c.want {
			t.Errorf("label %q: stands %q", c.label, got)
		}
		stream, err := manager.Subscribe(t.Context(), &generic.SubscribeRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != c.code {
			t.Errorf("label %q: a stream: %v", c.label, err)
		}
		const names = "this agent has the label vpp1, and the request is for vpp2"
		if c.code != codes.OK && !strings.Contains(err.Error(), names) {
			t.Errorf("label %q: %v; expected %s", c.label, err, names)
		}
	}
}

// ownSocket serves the private calls of a server with HTTP/2 on a socket, until the test ends,
// and returns its path.
func ownSocket(t *testing.T, s *grpc.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: s.Private(), Protocols: new(http.Protocols)}
	web.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }()
	t.Cleanup(func() {
		web.Close()
		<-ended
	})
	return path
}

// The agent's own socket serves the calls with secrets, also without an address. At the end
// streams end, and further calls are told to come again.
func TestPrivate(t *testing.T) {
	w := newWorld(t, nil)
	config := grpc.Config{Disabled: true}
	if err := config.Complete(); err != nil {
		t.Fatal(err)
	}
	s := &grpc.Server{Config: config, Options: grpc.Options{Scheduler: w.sched, Layers: w.orch}}
	conn := connect(t, "agent", reach.Through(ownSocket(t, s))...)
	manager := generic.NewManagerServiceClient(conn)
	if _, err := manager.GetConfig(t.Context(), &generic.GetConfigRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("before Run: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	// Run serves at some time.
	_, err := manager.GetConfig(t.Context(), &generic.GetConfigRequest{})
	for status.Code(err) == codes.Unavailable && t.Context().Err() == nil {
		_, err = manager.GetConfig(t.Context(), &generic.GetConfigRequest{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if key := secretOf(t, conn); key != "abc" {
		t.Errorf("the key reads %q", key)
	}
	stream, err := manager.Subscribe(t.Context(), &generic.SubscribeRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the agent stops") {
		t.Errorf("the stream ends with %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := manager.GetConfig(t.Context(), &generic.GetConfigRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("after Run: %v", err)
	}
}
