package grpc_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/tlsfiles"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// The transaction and the log name who has sent it: a client with a certificate by that and its address, one of a Unix
// socket by its user and process.
func TestSenderIsNamed(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	files := testkit.MakeCertificates(t)
	secure, err := tlsfiles.Files{CA: files.CA, Cert: files.Client.Cert, Key: files.Client.Key}.Load()
	if err != nil {
		t.Fatal(err)
	}
	secure.ServerName = "127.0.0.1" // also on a Unix socket
	encrypted := rpc.WithTransportCredentials(credentials.NewTLS(secure))
	process := regexp.QuoteMeta(fmt.Sprintf("%s (pid %d)", me.Username, os.Getpid()))
	for _, test := range []struct {
		name, network string
		transport     rpc.DialOption
		want          string // a regular expression
	}{
		{"a certificate", "tcp", encrypted, `certificate of client from 127\.0\.0\.1:\d+`},
		{"a certificate on a Unix socket", "unix", encrypted, "certificate of client from " + process},
		{"TCP", "tcp", rpc.WithTransportCredentials(insecure.NewCredentials()), `127\.0\.0\.1:\d+`},
		{"a Unix socket", "unix", rpc.WithTransportCredentials(insecure.NewCredentials()), process},
		{"a Unix socket of packets", "unixpacket", rpc.WithTransportCredentials(insecure.NewCredentials()), process},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, nil)
			var log bytes.Buffer
			w.log = slog.New(slog.NewTextHandler(&log, nil))
			config := grpc.Config{Network: test.network, Endpoint: "127.0.0.1:0"}
			if test.network != "tcp" {
				config.Endpoint = filepath.Join(t.TempDir(), "grpc.sock")
			}
			if test.transport == encrypted {
				config.Cert, config.Key, config.CAs = files.Server.Cert, files.Server.Key, []string{files.CA}
			}
			addr := w.serve(t, config)
			c := connect(t, addr.String(), test.transport, rpc.WithContextDialer(func(ctx context.Context, at string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, test.network, at)
				if test.network == "unixpacket" && err == nil {
					return grpc.PacketConn(c), nil
				}
				return c, err
			}))
			for _, name := range []string{"if1", "if2"} { // the first one joins the first transaction of the agent
				if _, err := generic.NewManagerServiceClient(c).SetConfig(t.Context(), &generic.SetConfigRequest{Updates: put(iface(name))}); err != nil {
					t.Fatal(err)
				}
			}
			var told []string
			for _, record := range w.sched.History() {
				told = append(told, record.Description)
			}
			if got := strings.Join(told, "\n"); !regexp.MustCompile("(?m)^grpc, by " + test.want + "$").MatchString(got) {
				t.Errorf("the transactions are\n%s\nexpected: by %s", got, test.want)
			}
			if got := log.String(); !regexp.MustCompile(`msg="a client has asked for a change" by="?` + test.want + `"? request=/ligato\.generic\.ManagerService/SetConfig err=<nil>\n`).MatchString(got) {
				t.Errorf("the log is %s; expected: by %s", got, test.want)
			}
			if _, err := generic.NewManagerServiceClient(c).GetConfig(t.Context(), &generic.GetConfigRequest{}); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(log.String(), "a client has asked"); n != 2 {
				t.Errorf("the log tells of %d changes; expected 2", n)
			}
		})
	}
}
