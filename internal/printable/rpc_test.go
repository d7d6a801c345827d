package printable_test

import (
	"testing"

	"github.com/keyplane/keyplane/internal/printable"
)

// TestWithoutRPC has errors as gRPC words them.
func TestWithoutRPC(t *testing.T) {
	for text, want := range map[string]string{
		"no such key": "no such key",
		"rpc error: code = Unavailable desc = etcdserver: no leader": "etcdserver: no leader",
		"rpc error: code = Code(42) desc = x":                        "x",
		`rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`:                                                                                                    "dial tcp 127.0.0.1:1: connect: connection refused",
		`connection error: desc = "transport: authentication handshake failed: tls: \"h2\" is \\ missing"`:                                                                                                                                                     `authentication handshake failed: tls: "h2" is \ missing`,
		`listing /a/ in etcd: rpc error: code = Unavailable desc = connection error: desc = "error reading server preface: read tcp a->b: reset by peer"; later`:                                                                                               "listing /a/ in etcd: error reading server preface: read tcp a->b: reset by peer; later",
		`rpc error: code = DeadlineExceeded desc = context deadline exceeded while waiting for connections to become ready; last connection error: connection error: desc = "transport: Error while dialing: dial unix s: connect: no such file or directory"`: "context deadline exceeded while waiting for connections to become ready; last connection error: dial unix s: connect: no such file or directory",
		`connection error: desc = "cut off`: `connection error: desc = "cut off`,
	} {
		if got := printable.WithoutRPC(text); got != want {
			t.Errorf("%s became\n%s; expected\n%s", text, got, want)
		}
	}
}
