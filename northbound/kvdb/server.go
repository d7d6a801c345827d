package kvdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/keyplane/keyplane/internal/conns"
	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/internal/sender"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A Server serves stores on a Unix socket. Call Run, or Listen followed by Run.
type Server struct {
	Socket string
	// Label is the label of the agent, which completes short keys. Defaults to none:
	// keys are not changed.
	Label  string
	Stores map[string]kvdbsync.Store
	// Group is the number of a group whose members may open the socket, besides this user and root. Defaults to
	// none.
	Group int
	// ByPriority are the names of Stores, the highest priority first. Defaults to none: clients have to
	// choose.
	ByPriority []string
	// Beside serves all paths that do not belong to the stores. Defaults to none.
	Beside http.Handler
	// Calls serves gRPC, which is HTTP/2 without TLS here. Defaults to refusing all calls.
	Calls http.Handler
	Log   *slog.Logger // Defaults to discarding
	// Ready, if set, is closed once the socket accepts connections.
	Ready chan<- struct{}
	// Ending, if set, is closed when Run begins to end. Streams of Beside have to end then:
	// Run cannot tell them from requests in progress, for which it waits.
	Ending chan<- struct{}

	// Set by Listen.
	listener net.Listener
	lock     *placeLock // held until the socket is closed
}

// Listen creates the socket and takes its lock, so that no other agent gets the
// socket before Run. It replaces the socket of a dead process. Errors: ErrInUse if
// an agent listens there, ErrUnsafe if other users can write to the directory. The
// caller calls Close.
func (s *Server) Listen(ctx context.Context) error {
	l, lock, made, err := listen(ctx, s.Socket, s.Label)
	if err != nil {
		return err
	}
	s.listener, s.lock = l, lock
	if err := s.share(made); err != nil {
		cmp.Or(s.Log, slog.New(slog.DiscardHandler)).Warn("the socket is for this user and root alone", "socket", s.Socket, "group", s.Group, "err", err)
	}
	return nil
}

// Close removes the socket that Listen created. It is needed if Run is not called.
func (s *Server) Close() {
	if s.listener != nil {
		s.listener.Close()
		s.lock.Close()
	}
}

// Run serves until ctx ends. Then it waits up to a second for requests in progress,
// and removes the socket. It calls Listen if the caller has not.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}
	log := cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	web := &http.Server{
		Handler:           s.handler(),
		Protocols:         protocols(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	defer s.lock.Close() // after the socket is removed
	if s.Ready != nil {
		close(s.Ready) // the socket accepts connections since Listen
	}
	err := conns.Serve(ctx, web, s.listener, func() {
		if s.Ending != nil {
			close(s.Ending)
		}
	})
	if err != nil {
		return fmt.Errorf("socket %s: %w", s.Socket, err)
	}
	return nil
}

// protocols returns HTTP/1 and HTTP/2. Clients of gRPC begin with HTTP/2: without it, they would not
// learn that this agent serves no gRPC.
func protocols() *http.Protocols {
	out := new(http.Protocols)
	out.SetHTTP1(true)
	out.SetUnencryptedHTTP2(true)
	return out
}

// noCalls refuses a call of gRPC, in the form for answers without a message (gRPC over HTTP/2,
// Trailers-Only).
func noCalls(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", strconv.Itoa(int(codes.Unimplemented)))
	w.Header().Set("Grpc-Message", "this agent serves no gRPC")
}

// handler combines the stores with Beside and Calls.
func (s *Server) handler() http.Handler {
	paths := s.told(Handler(s.Label, s.Stores, s.ByPriority))
	if s.Beside != nil {
		mux := http.NewServeMux()
		mux.Handle("/v1/", paths)
		mux.Handle("/", s.Beside)
		paths = mux
	}
	calls := s.Calls
	if calls == nil {
		calls = http.HandlerFunc(noCalls)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			calls.ServeHTTP(w, r)
			return
		}
		paths.ServeHTTP(w, r)
	})
}

// told logs each request that may change a store, with who sends it.
func (s *Server) told(next http.Handler) http.Handler {
	log := cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		if r.Method != http.MethodGet {
			log.Info("a client has asked for a change of a store", "by", sender.Of(r.Context()), "request", r.Method+" "+r.URL.Path, "key", r.URL.Query().Get("key"), "status", answer.status)
		}
	})
}

// A statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap makes http.ResponseController find the methods of the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// listen creates the socket under its lock. If two agents start at once, one of them
// gets the lock and the other ErrInUse. made tells that the directory is new.
func listen(ctx context.Context, socket, label string) (_ net.Listener, lock *placeLock, made bool, err error) {
	if err := checkPath(socket); err != nil {
		return nil, nil, false, err
	}
	made, err = secureDirectory(filepath.Dir(socket))
	if err != nil {
		return nil, nil, false, fmt.Errorf("socket %s: %w", socket, err)
	}
	lock, err = lockSocket(socket, label)
	if err != nil {
		return nil, nil, false, fmt.Errorf("socket %s: %w", socket, err)
	}
	l, err := bind(ctx, socket)
	if err != nil {
		lock.Close()
		return nil, nil, false, err
	}
	return l, lock, made, nil
}

// bind creates the socket. A file that a dead process left is removed.
func bind(ctx context.Context, socket string) (net.Listener, error) {
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// The mode of the descriptor becomes the mode of the file. A chmod after the
		// creation would leave a moment in which other users can connect.
		var mode error
		err := c.Control(func(fd uintptr) { mode = unix.Fchmod(int(fd), 0o600) })
		return errors.Join(err, mode)
	}}
	l, err := private.Listen(ctx, "unix", socket)
	if errors.Is(err, unix.EADDRINUSE) {
		if err := removeStaleSocket(ctx, socket); err != nil {
			return nil, fmt.Errorf("socket %s: %w", socket, err)
		}
		l, err = private.Listen(ctx, "unix", socket)
	}
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l, nil
}

// removeStaleSocket removes a socket without a listening process. It refuses to
// remove other files.
func removeStaleSocket(ctx context.Context, socket string) error {
	info, err := os.Lstat(socket)
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSocket == 0 {
		return errors.New("the file exists and is not a socket: remove it, or choose another path")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err == nil {
		defer conn.Close()
		return fmt.Errorf("%w%s", ErrInUse, processOf(conn))
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return err
	}
	return os.Remove(socket)
}

// processOf names the listening process, if the kernel reports it. A process in
// another PID namespace has none.
func processOf(conn net.Conn) string {
	peer, err := reach.Peer(conn)
	if err != nil || peer.Pid == 0 {
		return ""
	}
	return fmt.Sprintf(": the process with pid %d", peer.Pid)
}
