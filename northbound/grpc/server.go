package grpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	rpc "google.golang.org/grpc"

	"github.com/keyplane/keyplane/internal/conns"
)

// A Server serves all services at one address, and on the agent's own socket. It may not be
// copied.
type Server struct {
	Config  Config // after Complete
	Options Options
	// Ready, if set, receives the address once the server accepts connections.
	Ready chan<- net.Addr

	// The server behind Private. nil: Run does not serve.
	private atomic.Pointer[rpc.Server]
}

// Run serves until ctx ends. Then streams end, and it waits up to a second for calls in
// progress. An address that is in use does not stop the agent: Run retries. It fails at once
// if the files of TLS cannot be read. If the configuration disables the address, Run serves
// only Private.
func (s *Server) Run(ctx context.Context) error {
	s.Options.Log = cmp.Or(s.Options.Log, slog.New(slog.DiscardHandler))
	options, err := s.serverOptions(s.Options.Log)
	if err != nil {
		return fmt.Errorf("gRPC server: %w", err)
	}
	services := &service{Options: s.Options, secrets: s.Config.secrets(), ended: make(chan struct{}), mostAnswer: answerPerRequest * s.Config.MaxMsgSize, awaited: new(atomic.Int64)}
	services.states = newHub(s.Options.Scheduler, services.ended)
	defer services.states.wait()
	services.events = newNotifications()
	watching, stop := context.WithCancel(ctx)
	var events sync.WaitGroup
	defer events.Wait()
	defer stop()
	for _, report := range s.Options.Events {
		events.Go(func() { report(watching, services.events.add) })
	}
	end := s.servePrivate(*services, options)
	defer end()
	if s.Config.Disabled {
		<-ctx.Done()
		close(services.ended)
		return nil
	}
	return s.serve(ctx, services, options)
}

// Private returns a handler of the calls for a listener that only the agent's own user can
// reach: clients may read secrets. It answers 503 while Run does not serve.
func (s *Server) Private() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server := s.private.Load()
		if server == nil { // clients of gRPC understand the status as UNAVAILABLE
			http.Error(w, "the agent starts or stops", http.StatusServiceUnavailable)
			return
		}
		c := newCall(r, s.Options.Memory)
		defer c.end()
		c.serve(server, &answering{ResponseWriter: w}, r)
	})
}

// servePrivate makes Private serve until end is called. Streams end with the services; the
// listener of the caller waits for other calls.
func (s *Server) servePrivate(services service, options []rpc.ServerOption) (end func()) {
	services.secrets = true
	server := rpc.NewServer(options...)
	alive := services.register(server)
	s.private.Store(server)
	return func() {
		alive.Shutdown()
		s.private.Store(nil)
	}
}

// serverOptions are those of both servers: the largest request, and interceptors.
func (s *Server) serverOptions(log *slog.Logger) ([]rpc.ServerOption, error) {
	guard := interceptor{log: log, label: s.Options.Label, calls: s.Config.ExtendedLogging}
	var out []rpc.ServerOption
	if s.Config.PrometheusMetrics && s.Options.Metrics != nil {
		counts := grpcprom.NewServerMetrics(grpcprom.WithServerHandlingTimeHistogram())
		if err := s.Options.Metrics.Register(counts); err != nil {
			return nil, fmt.Errorf("prometheus-metrics: %w", err)
		}
		out = append(out, rpc.ChainUnaryInterceptor(counts.UnaryServerInterceptor()), rpc.ChainStreamInterceptor(counts.StreamServerInterceptor()))
	}
	return append(out,
		rpc.MaxRecvMsgSize(s.Config.MaxMsgSize), rpc.ForceServerCodecV2(newCodec()),
		rpc.ChainUnaryInterceptor(guard.unary), rpc.ChainStreamInterceptor(guard.stream),
	), nil
}

// serve handles calls at the address until ctx ends or the listener fails. It ends the
// services.
func (s *Server) serve(ctx context.Context, services *service, options []rpc.ServerOption) error {
	end := sync.OnceFunc(func() { close(services.ended) })
	defer end()
	log := s.Options.Log
	secure, err := s.Config.files().Load()
	if err != nil {
		return fmt.Errorf("gRPC server: %w", err)
	}
	s.warn(log)
	if !s.Config.socket() && (s.Config.Permission != 0 || s.Config.ForceSocketRemoval) {
		log.Warn("permission and force-socket-removal of grpc.conf have no effect: they need network: unix or unixpacket", "network", s.Config.Network)
	}
	l := s.listen(ctx, log)
	if l == nil {
		return nil
	}
	log.Info("gRPC server listens", "endpoint", l.Addr().String())
	if s.Ready != nil {
		s.Ready <- l.Addr()
	}
	server := rpc.NewServer(options...)
	alive := services.register(server)
	web := s.web(newGate(server, services, s.Config), log)
	web.TLSConfig = secure
	err = conns.Serve(ctx, web, conns.Limit(l, s.Config.MaxConnections), func() {
		alive.Shutdown()
		end()
	})
	if err != nil {
		return fmt.Errorf("gRPC server at %s: %w", s.Config.Endpoint, err)
	}
	return nil
}

// warn logs what the configuration permits to everybody. Each start repeats it: whoever reads the log may not know the
// configuration.
func (s *Server) warn(log *slog.Logger) {
	switch c := s.Config; {
	case c.openedBy == "compat":
		log.Warn("everybody who reaches the gRPC server can change the network and read secrets; cert-file, key-file and ca-files, or unauthenticated: read of grpc.conf prevent that",
			"endpoint", c.Endpoint, "key", c.openedBy)
	case c.openedBy != "":
		log.Warn("everybody who reaches the gRPC server can change the network; cert-file, key-file and ca-files, or unauthenticated: read of this file prevent that",
			"endpoint", c.Endpoint, "file", cmp.Or(c.File, "grpc.conf"), "key", c.openedBy)
	case !c.local() && !c.authenticated():
		log.Warn("everybody who reaches the gRPC server can read the configuration; cert-file, key-file and ca-files of grpc.conf prevent that", "endpoint", c.Endpoint)
	}
}

// web returns the server of HTTP/2 for the address. That of gRPC itself would keep what clients
// send and do not read, without a bound for all of them together.
func (s *Server) web(calls http.Handler, log *slog.Logger) *http.Server {
	web := &http.Server{
		Handler:           calls,
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: 10 * time.Second, // of a connection
		ReadTimeout:       time.Minute,      // of a request
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: int(s.Config.MaxConcurrentStreams),
			SendPingTimeout:      time.Minute,
			PingTimeout:          20 * time.Second,
			WriteByteTimeout:     maxUnread,
		},
	}
	web.Protocols.SetHTTP2(true)
	web.Protocols.SetUnencryptedHTTP2(true)
	return web
}

// maxHeader is the most metadata of a call, in bytes. Clients made from gRPC's C core send half as much.
const maxHeader = 16 << 10

// listen opens the address, with retries. It logs an error once, until the error
// changes. It returns nil if ctx ends.
func (s *Server) listen(ctx context.Context, log *slog.Logger) net.Listener {
	const most = 30 * time.Second
	logged := ""
	for wait := time.Second; ; wait = min(2*wait, most) {
		l, err := s.listenOnce(ctx)
		if err == nil {
			return l
		}
		if err.Error() != logged && ctx.Err() == nil {
			logged = err.Error()
			log.Warn("gRPC server cannot listen; it retries", "endpoint", s.Config.Endpoint, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// listenOnce opens the listener of the configuration once. The caller tries again, because
// an address may be free later.
func (s *Server) listenOnce(ctx context.Context) (net.Listener, error) {
	if !s.Config.socket() {
		return (&net.ListenConfig{}).Listen(ctx, s.Config.Network, s.Config.Endpoint)
	}
	if err := s.makeRoom(ctx); err != nil {
		return nil, err
	}
	mode, err := s.Config.mode()
	if err != nil {
		return nil, err
	}
	return listenUnix(ctx, s.Config.Network, s.Config.Endpoint, fs.FileMode(mode))
}

// errListens reports that another process listens on the socket.
var errListens = errors.New("a process listens on this socket; force-socket-removal: true replaces it")

// makeRoom removes the socket of a dead process, or of any process if that is configured. It
// never removes another kind of file.
func (s *Server) makeRoom(ctx context.Context) error {
	path := s.Config.Endpoint
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is not a socket; it is not replaced", path)
	}
	if !s.Config.ForceSocketRemoval {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, s.Config.Network, path)
		if err == nil {
			conn.Close()
			return fmt.Errorf("%s: %w", path, errListens)
		}
	}
	return os.Remove(path)
}

// listenUnix creates a socket with a mode; 0: that which the umask leaves. It gets its name only when it has
// the mode, so that nobody else can connect before.
func listenUnix(ctx context.Context, network, path string, mode fs.FileMode) (net.Listener, error) {
	folder, err := os.MkdirTemp(filepath.Dir(path), ".grpc-") // of the agent's user alone
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	hidden := filepath.Join(folder, "s")
	l, err := (&net.ListenConfig{}).Listen(ctx, network, hidden)
	if err != nil {
		return nil, err
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	if mode != 0 {
		err = os.Chmod(hidden, mode)
	}
	if err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return newSocket(l, network, path)
}
