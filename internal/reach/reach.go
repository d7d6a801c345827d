// Package reach finds the agent that a program of this host means: by the socket of its label,
// and by naming the label in each call over gRPC.
//
//	path := reach.DefaultSocket("vpp1")
//	if reach.Listens(ctx, path) {
//		conn, err = grpc.NewClient(reach.Target, reach.Through(path)...)
//	}
//
// The socket serves HTTP, the stores and gRPC. Only the agent's own user, root and, for an agent of root, the
// members of [Group] can open it.
// An address such as 127.0.0.1:9111 may belong to another agent of the host. So a program that
// knows the label names it in its calls, and an agent with another label refuses them.
//
// The package keeps no state.
package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// ErrUnsafe reports that a user other than the agent's own and root could pose as the agent.
var ErrUnsafe = errors.New("not safe from other users")

// LabelKey is the key of the metadata that names the label of an agent: in a call the one that
// is expected, and in each answer that of the agent. Over HTTP the same name is a header.
const LabelKey = "keyplane-label"

// Target is the target of a gRPC client with the options of Through. The name in it becomes
// the authority of the calls; each connection goes to the socket.
const Target = "passthrough:///agent"

// DefaultSocket returns the default socket of the agent with this label: below
// /run/keyplane for root, otherwise below $XDG_RUNTIME_DIR/keyplane. Without that
// variable it is in a directory of the user below the one for temporary files.
// The agent checks that other users cannot write there.
func DefaultSocket(label string) string { return socketOf(os.Geteuid(), label) }

// Group is the name of the group whose members may open the sockets of the agents of root, if it exists.
const Group = "keyplane"

// Closed says who can open a socket that refuses this user.
const Closed = "expected root, the user of the agent, or for an agent of root a member of the group " + Group

// Find returns the socket at which a client of this user finds the agent with this label: that of an agent of the
// user, or that of root's agent where this user may open it and has no agent of its own.
func Find(label string) string { return find(DefaultSocket(label), socketOf(0, label)) }

func find(own, root string) string {
	if _, err := os.Lstat(own); err == nil || unix.Access(root, unix.W_OK) != nil {
		return own
	}
	return root
}

// rootDir has the sockets of the agents of root.
const rootDir = "/run/keyplane"

// socketOf is DefaultSocket for a user.
func socketOf(uid int, label string) string {
	dir := rootDir
	if uid != 0 {
		dir = filepath.Join(os.TempDir(), "keyplane-"+strconv.Itoa(uid))
		if own := os.Getenv("XDG_RUNTIME_DIR"); own != "" {
			dir = filepath.Join(own, "keyplane")
		}
	}
	return filepath.Join(dir, label+".sock")
}

// Absent asks a user what may be wrong if no agent listens on a socket. Only root can see whether an agent
// of root runs, which is the usual one of a host. So others learn where its socket is.
func Absent(uid int, socket string) string {
	const question = "is the agent running, and with this label?"
	label := strings.TrimSuffix(filepath.Base(socket), ".sock")
	if uid == 0 || socket != socketOf(uid, label) {
		return question
	}
	return question + " An agent of root has the socket " + socketOf(0, label) + ", which only root and the group " + Group + " can open"
}

// Dial connects to the socket of an agent. It refuses (ErrUnsafe) a listener that
// belongs neither to this user nor to root: another user could pose as the agent and
// collect secrets. Root may connect to the agents of all users.
func Dial(ctx context.Context, socket string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	peer, err := Peer(conn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the owner of the listening process is unknown: %w", err), conn.Close())
	}
	if uid := os.Geteuid(); uid != 0 && peer.Uid != 0 && int(peer.Uid) != uid {
		conn.Close()
		return nil, fmt.Errorf("%w: the listening process belongs to the user %d", ErrUnsafe, peer.Uid)
	}
	return conn, nil
}

// Listens reports whether an agent that this user may trust listens on the socket.
func Listens(ctx context.Context, socket string) bool {
	conn, err := Dial(ctx, socket)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// Peer returns the process at the other end of a Unix socket (SO_PEERCRED).
func Peer(conn net.Conn) (peer *unix.Ucred, err error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return peer, errors.Join(err, failed)
}

// Through returns options of a gRPC client for [Target]: its connections go to the socket of an
// agent, by [Dial]. The socket needs no TLS, because nothing leaves the host.
func Through(socket string) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return Dial(ctx, socket) }),
	}
}

// Naming returns options of a gRPC client that name the label of the expected agent in each
// call, and refuse the answer of an agent with another label. Answers without a label are
// those of older agents, and are accepted. Without a label it returns none, and any agent may
// answer.
func Naming(label string) []grpc.DialOption {
	if label == "" {
		return nil
	}
	named := func(ctx context.Context) context.Context {
		return metadata.AppendToOutgoingContext(ctx, LabelKey, label)
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			var header metadata.MD
			err := call(named(ctx), method, req, reply, cc, append(opts, grpc.Header(&header))...)
			if err != nil {
				return err // that of an agent with another label names both
			}
			return answered(header, label)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			ctx, cancel := context.WithCancel(named(ctx))
			stream, err := open(ctx, desc, cc, method, opts...)
			if err != nil {
				cancel()
				return nil, err
			}
			return &namedStream{ClientStream: stream, label: label, cancel: cancel}, nil
		}),
	}
}

// answered returns an error if the header of an answer names another label than the expected
// one. Our agents refuse such a call themselves; anything between may have removed its label.
func answered(header metadata.MD, label string) error {
	for _, got := range header.Get(LabelKey) {
		if got != label {
			return status.Errorf(codes.FailedPrecondition, "the answer is that of the agent %s, and the request is for %s", got, label)
		}
	}
	return nil
}

// A namedStream compares the label of the agent before it returns the first message.
type namedStream struct {
	grpc.ClientStream
	label    string
	cancel   context.CancelFunc // ends the stream
	compared bool
}

// RecvMsg implements grpc.ClientStream. After an error the stream has ended.
func (s *namedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil && !s.compared {
		var header metadata.MD
		header, err = s.Header() // it came before the message
		if err == nil {
			err = answered(header, s.label)
		}
		s.compared = true
	}
	if err != nil {
		s.cancel()
	}
	return err
}
