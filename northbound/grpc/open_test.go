package grpc_test

import (
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
)

// Without certificates everybody may read at an address, and change what the configuration opens.
func TestWhoMayChange(t *testing.T) {
	for name, tt := range map[string]struct {
		config grpc.Config
		opened bool
		says   string // of the log
	}{
		"no file":            {grpc.Config{Address: "127.0.0.1:0"}, false, ""},
		"an endpoint":        {grpc.Config{Endpoint: "127.0.0.1:0", File: "/etc/grpc.conf"}, true, "can change the network; cert-file, key-file and ca-files, or unauthenticated: read of this file prevent that\" endpoint=127.0.0.1:0 file=/etc/grpc.conf key=endpoint"},
		"a readable address": {grpc.Config{Endpoint: "127.0.0.1:0", Unauthenticated: grpc.Read, InsecureTransport: true}, false, ""},
		"open":               {grpc.Config{Address: "127.0.0.1:0", Unauthenticated: grpc.Write}, true, "key=unauthenticated"},
		"open, as before":    {grpc.Config{Address: "127.0.0.1:0", InsecureTransport: true}, true, "key=insecure-transport"},
		"the rights of 3.5":  {grpc.Config{Address: "127.0.0.1:0", Older: true}, true, "can change the network and read secrets"},
		"a file before 3.5":  {grpc.Config{Address: "127.0.0.1:0", Older: true, Unauthenticated: grpc.Read}, false, ""},
		"others may read":    {grpc.Config{Endpoint: "0.0.0.0:0", Unauthenticated: grpc.Read}, false, "everybody who reaches the gRPC server can read the configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.more.Socket = "/run/keyplane/vpp1.sock"
			var log strings.Builder // written before the server is ready
			w.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			c := plain(t, w.serve(t, tt.config))
			if !strings.Contains(log.String(), tt.says) || strings.Count(log.String(), "\n") != min(1, len(tt.says)) {
				t.Errorf("the log is %q, want one line with %q", &log, tt.says)
			}
			manager, one := generic.NewManagerServiceClient(c), configurator.NewConfiguratorServiceClient(c)
			veth := &interfaces.Interface{Name: "if1"}
			for method, call := range map[string]func() error{
				"SetConfig": func() error {
					_, err := manager.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: put(veth)})
					return err
				},
				"Update": func() error {
					_, err := one.Update(t.Context(), &configurator.UpdateRequest{})
					return err
				},
				"Delete": func() error {
					_, err := one.Delete(t.Context(), &configurator.DeleteRequest{})
					return err
				},
			} {
				err := call()
				if refused := status.Code(err) == codes.PermissionDenied; refused == tt.opened {
					t.Errorf("%s: %v", method, err)
				}
				for _, part := range []string{"/" + method + " needs a client certificate over TCP", "cert-file, key-file and ca-files", "the group keyplane", "unix:/run/keyplane/vpp1.sock"} {
					if !tt.opened && !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %v does not say %q", method, err, part)
					}
				}
			}
			if _, err := manager.DumpState(t.Context(), &generic.DumpStateRequest{}); err != nil {
				t.Error(err)
			}
			sa := &ipsec.SecurityAssociation{Index: 1, CryptoKey: "abc"}
			key := models.For[*ipsec.SecurityAssociation]().KeyOf("1")
			if _, err := w.orch.Declare(t.Context(), orchestrator.Request{Layer: "grpc", Values: []orchestrator.Declared{{Key: key, Message: sa}}}); err != nil {
				t.Fatal(err)
			}
			got, err := one.Get(t.Context(), &configurator.GetRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if shown := got.Config.VppConfig.IpsecSas[0].CryptoKey == "abc"; shown != (name == "the rights of 3.5") {
				t.Errorf("the secret is shown: %v", shown)
			}
		})
	}
}
