package etcd_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"regexp"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// rpcWords are what gRPC says for programs.
var rpcWords = regexp.MustCompile(`rpc error|desc = |transport: `)

// TestErrorsWithoutRPC looks at the error of each kind of request, with and without a user, while nobody listens and while
// connections are reset. No text and no line of the log has words of gRPC, and programs still find its code.
func TestErrorsWithoutRPC(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, address := range map[string]string{"nobody listens": closed.Addr().String(), "connections are reset": resetting(t)} {
		for who, cfg := range map[string]etcd.Config{
			"anybody": {Endpoints: []string{address}},
			"a user":  {Endpoints: []string{address}, Username: "agent", Password: "secret"},
		} {
			t.Run(name+" to "+who, func(t *testing.T) {
				t.Parallel()
				var log bytes.Buffer
				for request, err := range requests(t, cfg, slog.New(slog.NewTextHandler(&log, nil))) {
					if err == nil || rpcWords.MatchString(err.Error()) || status.Code(err) != codes.Unavailable {
						t.Errorf("%s: %v, %v", request, status.Code(err), err)
					}
				}
				if rpcWords.MatchString(log.String()) {
					t.Errorf("the log:\n%s", &log)
				}
			})
		}
	}
}

// requests returns the error of each kind of request.
func requests(t *testing.T, cfg etcd.Config, log *slog.Logger) map[string]error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	cfg.OperationTimeout, cfg.DialTimeout = testkit.Patience, testkit.Patience
	errs := map[string]error{}
	c := etcd.New(cfg, log)
	for _, err := range c.Watch(ctx, root) {
		errs["watch"] = err
	}
	_, errs["session"] = c.Session(ctx, time.Minute)
	_, errs["beside"] = c.Beside(ctx, root, nil)
	client, err := c.Dial(ctx)
	if err != nil {
		errs["dial"] = err
		return errs
	}
	defer client.Close()
	_, errs["get"] = client.Get(ctx, "a")
	_, errs["list"] = client.List(ctx, "a")
	errs["put"] = client.Put(ctx, "a", nil)
	_, errs["put if absent"] = client.PutIfAbsent(ctx, "a", nil)
	_, errs["put if same"] = client.PutIfSame(ctx, "a", nil, nil)
	_, errs["delete"] = client.Delete(ctx, "a")
	errs["apply"] = client.Apply(ctx, []kvdbsync.Pair{{Key: "a"}, {Key: "b"}})
	return errs
}

// resetting returns the address of a server that resets each connection.
func resetting(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return l.Addr().String()
}
