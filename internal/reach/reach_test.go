package reach_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/internal/testkit"
)

func TestDefaultSocket(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	want := "/run/user/7/keyplane/vpp1.sock"
	if os.Geteuid() == 0 {
		want = "/run/keyplane/vpp1.sock"
	}
	if got := reach.DefaultSocket("vpp1"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAbsent(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	const question = "is the agent running, and with this label?"
	ofRoot := question + " An agent of root has the socket /run/keyplane/vpp1.sock, which only root and the group keyplane can open"
	for _, test := range []struct {
		uid          int
		socket, want string
	}{
		{7, "/run/user/7/keyplane/vpp1.sock", ofRoot},
		{7, "/elsewhere/vpp1.sock", question}, // the user has named it
		{0, "/run/keyplane/vpp1.sock", question},
	} {
		if got := reach.Absent(test.uid, test.socket); got != test.want {
			t.Errorf("user %d, %s: %s", test.uid, test.socket, got)
		}
	}
}

// TestFind has the sockets of a user and of root. A file takes the place of each: no process need listen.
func TestFind(t *testing.T) {
	if os.Getenv("REACH_CHILD") != "" {
		fmt.Fprintln(os.Stdout, "RESULT", reach.FindIn(os.Getenv("OWN"), os.Getenv("ROOTS")))
		return
	}
	who := testkit.OrdinaryUser(t)
	dir, err := os.MkdirTemp("", "reach") //nolint:usetesting // another user must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	own, roots := filepath.Join(dir, "own"), filepath.Join(dir, "roots")
	for _, test := range []struct {
		name      string
		own, root fs.FileMode // 0: no file
		want      string
	}{
		{"both are open", 0o666, 0o666, own},
		{"only that of root", 0, 0o666, roots},
		{"that of root is for others", 0, 0o660, own},
		{"none", 0, 0, own},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := os.Chmod(dir, 0o755)
			for path, mode := range map[string]fs.FileMode{own: test.own, roots: test.root} {
				if mode != 0 {
					err = errors.Join(err, os.WriteFile(path, nil, mode), os.Chmod(path, mode))
				}
				t.Cleanup(func() { os.Remove(path) })
			}
			if err != nil {
				t.Fatal(err)
			}
			child := exec.Command("/proc/self/exe", "-test.run=^TestFind$", "-test.v")
			child.Env, child.Dir = []string{"REACH_CHILD=1", "OWN=" + own, "ROOTS=" + roots}, "/"
			child.SysProcAttr = &syscall.SysProcAttr{Credential: who}
			out, err := child.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "RESULT "+test.want+"\n") {
				t.Errorf("%v, want %s:\n%s", err, test.want, out)
			}
		})
	}
}

// serve runs a gRPC server whose calls handle answers, on a socket until the test ends, and
// returns its path.
func serve(t *testing.T, handle grpc.StreamHandler) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(handle))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// calls are one call of each kind, which returns the error of its answer.
func calls(t *testing.T, socket, label string) map[string]func(context.Context) error {
	t.Helper()
	conn, err := grpc.NewClient(reach.Target, append(reach.Through(socket), reach.Naming(label)...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return map[string]func(context.Context) error{
		"unary": func(ctx context.Context) error {
			return conn.Invoke(ctx, "/s/unary", &emptypb.Empty{}, &emptypb.Empty{})
		},
		"stream": func(ctx context.Context) error {
			s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/s/stream")
			if err != nil {
				return err
			}
			return errors.Join(s.SendMsg(&emptypb.Empty{}), s.CloseSend(), s.RecvMsg(&emptypb.Empty{}))
		},
	}
}

// Each call through a socket names the label, whatever kind it is.
func TestNaming(t *testing.T) {
	if reach.Listens(t.Context(), filepath.Join(t.TempDir(), "s")) {
		t.Error("nobody listens")
	}
	named := make(chan []string, 1)
	socket := serve(t, func(_ any, stream grpc.ServerStream) error {
		named <- metadata.ValueFromIncomingContext(stream.Context(), reach.LabelKey)
		return status.Error(codes.Unimplemented, "no service")
	})
	if !reach.Listens(t.Context(), socket) {
		t.Error("a server listens")
	}
	for label, want := range map[string][]string{"": nil, "edge": {"edge"}} {
		for kind, call := range calls(t, socket, label) {
			failed := call(t.Context()) // there is no such service
			if got := <-named; !slices.Equal(got, want) || status.Code(failed) != codes.Unimplemented {
				t.Errorf("label %q: a %s call names %q (%v)", label, kind, got, failed)
			}
		}
	}
}

// An answer of an agent with another label is refused, also if the agent did not refuse the
// call. An answer without a label is accepted.
func TestAnswerOfAnotherAgent(t *testing.T) {
	for _, test := range []struct{ agent, label, failure string }{
		{agent: "edge", label: "edge"},
		{agent: "", label: "edge"},
		{agent: "core", label: ""},
		{agent: "core", label: "edge", failure: "the answer is that of the agent core, and the request is for edge"},
	} {
		socket := serve(t, func(_ any, stream grpc.ServerStream) error {
			if test.agent != "" {
				if err := stream.SetHeader(metadata.Pairs(reach.LabelKey, test.agent)); err != nil {
					return err
				}
			}
			return stream.SendMsg(&emptypb.Empty{})
		})
		for kind, call := range calls(t, socket, test.label) {
			err := call(t.Context())
			if (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
				t.Errorf("agent %q, label %q: a %s call: %v; expected %q", test.agent, test.label, kind, err, test.failure)
			}
		}
	}
}
