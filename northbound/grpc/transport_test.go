package grpc_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/tlsfiles"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
)

func plain(tb testing.TB, addr net.Addr) *rpc.ClientConn {
	return connect(tb, addr.String(), rpc.WithTransportCredentials(insecure.NewCredentials()))
}

// secretOf declares an association and returns the key that the client then reads.
func secretOf(t *testing.T, c *rpc.ClientConn) string {
	t.Helper()
	sa := &ipsec.SecurityAssociation{Index: 1, CryptoKey: "abc"}
	if _, err := generic.NewManagerServiceClient(c).SetConfig(t.Context(), &generic.SetConfigRequest{Updates: put(sa)}); err != nil {
		t.Fatal(err)
	}
	got, err := configurator.NewConfiguratorServiceClient(c).Get(t.Context(), &configurator.GetRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Config.VppConfig.IpsecSas[0].CryptoKey
}

// A socket has its mode before anybody can connect; its clients read secrets.
func TestUnixSocket(t *testing.T) {
	for _, network := range []string{"unix", "unixpacket"} {
		t.Run(network, func(t *testing.T) {
			w := newWorld(t, nil)
			path := filepath.Join(t.TempDir(), "grpc.sock")
			dead, err := net.Listen("unix", path) // as a process leaves it that was killed
			if err != nil {
				t.Fatal(err)
			}
			dead.(*net.UnixListener).SetUnlinkOnClose(false)
			dead.Close()
			w.serve(t, grpc.Config{Network: network, Endpoint: path, Permission: 660})
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o660 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			c := connect(t, path, rpc.WithTransportCredentials(insecure.NewCredentials()),
				rpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
					c, err := (&net.Dialer{}).DialContext(ctx, network, path)
					if network == "unixpacket" && err == nil {
						return grpc.PacketConn(c), nil
					}
					return c, err
				}))
			if key := secretOf(t, c); key != "abc" {
				t.Errorf("the key reads %q", key)
			}
			long := &interfaces.Interface{Name: "if1", HostIfName: strings.Repeat("x", 1<<20)}
			manager := generic.NewManagerServiceClient(c)
			if _, err := manager.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: put(long)}); err != nil {
				t.Error(err)
			}
			got, err := manager.GetConfig(t.Context(), &generic.GetConfigRequest{})
			if err != nil || len(got.Items) != 2 || len(got.Items[0].Item.Data.GetAny().Value) < 1<<20 {
				t.Errorf("of 1 MiB %d items came back: %v", len(got.GetItems()), err)
			}
		})
	}
}

// Another process keeps its socket, and another file is never replaced.
func TestSocketThatIsInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grpc.sock")
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config grpc.Config
		want   string
	}{
		{grpc.Config{Network: "unix", Endpoint: path}, "a process listens on this socket; force-socket-removal: true replaces it"},
		{grpc.Config{Network: "unix", Endpoint: file, ForceSocketRemoval: true}, "is not a socket; it is not replaced"},
		{grpc.Config{Network: "unix", Endpoint: "/nowhere/grpc.sock"}, "no such file or directory"},
	} {
		if err := c.config.Complete(); err != nil {
			t.Fatal(err)
		}
		if _, err := grpc.ListenOnce(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.config.Endpoint, err, c.want)
		}
	}
	forced := grpc.Config{Network: "unix", Endpoint: path, ForceSocketRemoval: true}
	if err := forced.Complete(); err != nil {
		t.Fatal(err)
	}
	l, err := grpc.ListenOnce(t.Context(), forced)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("after Close: %v", err)
	}
}

func TestTLS(t *testing.T) {
	w := newWorld(t, nil)
	files := testkit.MakeCertificates(t)
	addr := w.serve(t, grpc.Config{Endpoint: "127.0.0.1:0", Cert: files.Server.Cert, Key: files.Server.Key, CAs: []string{files.CA}}).String()
	conn := func(client tlsfiles.Files) *rpc.ClientConn {
		conf, err := client.Load()
		if err != nil {
			t.Fatal(err)
		}
		return connect(t, addr, rpc.WithTransportCredentials(credentials.NewTLS(conf)))
	}
	if key := secretOf(t, conn(tlsfiles.Files{CA: files.CA, Cert: files.Client.Cert, Key: files.Client.Key})); key != "abc" {
		t.Errorf("the key reads %q", key)
	}
	other := testkit.MakeCertificates(t) // of another authority
	for name, c := range map[string]*rpc.ClientConn{
		"no certificate":              conn(tlsfiles.Files{CA: files.CA}),
		"certificate of another one":  conn(tlsfiles.Files{CA: files.CA, Cert: other.Client.Cert, Key: other.Client.Key}),
		"server of another authority": conn(tlsfiles.Files{CA: other.CA, Cert: files.Client.Cert, Key: files.Client.Key}),
		"no TLS":                      connect(t, addr, rpc.WithTransportCredentials(insecure.NewCredentials())),
	} {
		_, err := generic.NewMetaServiceClient(c).KnownModels(t.Context(), &generic.KnownModelsRequest{})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&grpc.Server{Config: grpc.Config{Network: "tcp", Endpoint: "127.0.0.1:0", Cert: "/nowhere", Key: "/nowhere"}}).Run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "cert-file: open /nowhere") {
		t.Errorf("files that do not exist: %v", err)
	}
}

func TestLimits(t *testing.T) {
	w := newWorld(t, nil)
	addr := w.serve(t, grpc.Config{Endpoint: "127.0.0.1:0", MaxMsgSize: 1 << 10})
	manager := generic.NewManagerServiceClient(plain(t, addr))
	_, err := manager.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: put(iface(strings.Repeat("x", 1<<11)))})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a request that is too large: %v", err)
	}
	if got := w.names(); got != "" {
		t.Errorf("stands %q", got)
	}
}

func TestHealthAndReflection(t *testing.T) {
	w := newWorld(t, nil)
	c := w.dial(t)
	for _, service := range []string{"", "ligato.generic.ManagerService", "ligato.configurator.StatsPollerService"} {
		got, err := healthpb.NewHealthClient(c).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || got.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", service, got, err)
		}
	}
	want := "grpc.health.v1.Health grpc.reflection.v1.ServerReflection grpc.reflection.v1alpha.ServerReflection ligato.configurator.ConfiguratorService " +
		"ligato.configurator.StatsPollerService ligato.generic.ManagerService ligato.generic.MetaService"
	v1, err := reflectionv1.NewServerReflectionClient(c).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = v1.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	answer, err := v1.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().Service {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("services %s", got)
	}
	alpha, err := reflectionv1alpha.NewServerReflectionClient(c).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = alpha.Send(&reflectionv1alpha.ServerReflectionRequest{MessageRequest: &reflectionv1alpha.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "ligato.generic.ManagerService"}}) //nolint:staticcheck // existing clients use it
	if got, err := alpha.Recv(); err != nil || len(got.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {                                                                                    //nolint:staticcheck // as above
		t.Errorf("%v, %v", got, err)
	}
}
