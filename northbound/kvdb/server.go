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
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A Server serves stores on a socket.
type Server struct {
	Socket string
	// Label is that of the agent. Short keys are completed with it. Defaults to none: all
	// keys are taken as they come.
	Label  string
	Stores map[string]kvdbsync.Store
	// Beside serves all paths that are not of the stores. Defaults to nothing.
	Beside http.Handler
	Log    *slog.Logger // Defaults to discarding
	// Ready, if set, is closed when the socket takes connections.
	Ready chan<- struct{}

	// Set by Listen.
	listener net.Listener
	lock     *placeLock // held until the socket is closed
}

// Listen takes the socket, so that nobody else gets it before Run serves there. What a
// dead process left at its place is replaced; a living one is ErrInUse. A directory that
// other users can write is ErrUnsafe. Whoever calls it calls Close in the end.
func (s *Server) Listen(ctx context.Context) error {
	l, lock, err := listen(ctx, s.Socket, s.Label)
	if err != nil {
		return err
	}
	s.listener, s.lock = l, lock
	return nil
}

// Close removes the socket that Listen took, if Run has not done so.
func (s *Server) Close() {
	if s.listener != nil {
		s.listener.Close()
		s.lock.Close()
	}
}

// Run serves until ctx ends, then lets requests that are under way finish for a
// moment and removes the socket. It calls Listen if nobody has.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}
	log := cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	web := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	defer s.lock.Close() // after the socket is removed
	served := make(chan error, 1)
	go func() { served <- web.Serve(s.listener) }()
	if s.Ready != nil {
		close(s.Ready)
	}
	select {
	case err := <-served:
		return fmt.Errorf("socket %s: %w", s.Socket, err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if web.Shutdown(last) != nil {
		web.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("socket %s: %w", s.Socket, err)
	}
	return nil
}

func (s *Server) handler() http.Handler {
	stores := Handler(s.Label, s.Stores)
	if s.Beside == nil {
		return stores
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", stores)
	mux.Handle("/", s.Beside)
	return mux
}

// listen makes the socket, whose place is locked. Of two agents that start at once and find
// the same remains, one gets the place.
func listen(ctx context.Context, socket, label string) (_ net.Listener, lock *placeLock, err error) {
	if err := checkPath(socket); err != nil {
		return nil, nil, err
	}
	if err := secureDirectory(filepath.Dir(socket)); err != nil {
		return nil, nil, fmt.Errorf("socket %s: %w", socket, err)
	}
	if lock, err = lockSocket(socket, label); err != nil {
		return nil, nil, fmt.Errorf("socket %s: %w", socket, err)
	}
	l, err := bind(ctx, socket)
	if err != nil {
		lock.Close()
		return nil, nil, err
	}
	return l, lock, nil
}

func bind(ctx context.Context, socket string) (net.Listener, error) {
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// The mode of the descriptor becomes that of the file, so there is no moment at
		// which others may connect.
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

// removeRemains removes a socket that nobody listens on.
func removeStaleSocket(ctx context.Context, socket string) error {
	info, err := os.Lstat(socket)
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSocket == 0 {
		return errors.New("something else is there that is no socket: remove it, or choose another path")
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

// processOf says which process listens at the other end, where the kernel knows it.
func processOf(conn net.Conn) string {
	peer, err := peerOf(conn)
	if err != nil || peer.Pid == 0 {
		return ""
	}
	return fmt.Sprintf(": the process with pid %d", peer.Pid)
}

// peerOf is the process at the other end of a unix socket.
func peerOf(conn net.Conn) (peer *unix.Ucred, err error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return peer, errors.Join(err, failed)
}
