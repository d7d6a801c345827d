package rest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/internal/conns"
	"github.com/keyplane/keyplane/northbound/rest/internal/deadline"
)

// A Server serves a Handler on a TCP address, and the probes of supervisors on another one if there is one.
type Server struct {
	Config  Config // after Complete
	Options Options
	// Ready, if set, receives the address once the server accepts connections.
	Ready chan<- net.Addr
	// HealthReady is Ready for the address of the probes.
	HealthReady chan<- net.Addr
}

// Run serves until ctx ends. Then it waits up to a second for requests in progress.
// An address that is in use does not stop the agent: Run retries.
func (s *Server) Run(ctx context.Context) error {
	log := cmp.Or(s.Options.Log, slog.New(slog.DiscardHandler))
	g, ctx := errgroup.WithContext(ctx)
	if s.Config.HealthEndpoint != "" {
		g.Go(func() error { return s.serveHealth(ctx, log) })
	}
	if !s.Config.Disabled {
		g.Go(func() error { return s.serveAll(ctx, log) })
	}
	return g.Wait()
}

// serveAll serves all paths at the endpoint.
func (s *Server) serveAll(ctx context.Context, log *slog.Logger) error {
	s.warn(log)
	l := listen(ctx, s.Config.Endpoint, log)
	if l == nil {
		return nil
	}
	log.Info("HTTP server listens", "endpoint", l.Addr().String())
	if s.Ready != nil {
		s.Ready <- l.Addr()
	}
	return s.serve(ctx, l, log)
}

// serveHealth serves the paths of the probes at the health endpoint.
func (s *Server) serveHealth(ctx context.Context, log *slog.Logger) error {
	l := listen(ctx, s.Config.HealthEndpoint, log)
	if l == nil {
		return nil
	}
	log.Info("HTTP server listens for probes", "endpoint", l.Addr().String())
	if s.HealthReady != nil {
		s.HealthReady <- l.Addr()
	}
	// Probes send nothing and read little, so short limits hold whatever the other server permits.
	web := &http.Server{
		Handler: probes(s.Options), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	if err := conns.Serve(ctx, web, conns.Limit(l, maxProbes), nil); err != nil {
		return fmt.Errorf("HTTP server at %s: %w", s.Config.HealthEndpoint, err)
	}
	return nil
}

// maxProbes is the number of connections of probes that are accepted at once.
const maxProbes = 16

// warn logs what the configuration permits to other hosts. Each start repeats it: whoever reads the log
// may not know the configuration.
func (s *Server) warn(log *slog.Logger) {
	if len(s.Config.Users) > 0 && !s.Config.EnableTokenAuth {
		log.Warn("users of http.conf have no effect without enable-token-auth: true")
	}
	switch c := s.Config; {
	case c.openedBy == "compat":
		log.Warn("everybody who reaches the HTTP server can change the network, use VPP's command line and read secrets; "+
			"client-basic-auth, enable-token-auth, client-cert-files or unauthenticated: read of http.conf prevent that", "endpoint", c.Endpoint, "key", c.openedBy)
	case c.openedBy != "":
		log.Warn("everybody who reaches the HTTP server can change the network; "+
			"client-basic-auth, enable-token-auth, client-cert-files or unauthenticated: read of this file prevent that", "endpoint", c.Endpoint, "file", cmp.Or(c.File, "http.conf"), "key", c.openedBy)
	case c.loopback():
	case !c.users().Enabled():
		log.Warn("everybody who reaches the HTTP server can read the configuration; "+
			"client-basic-auth, enable-token-auth or client-cert-files of http.conf prevent that", "endpoint", c.Endpoint)
	case !c.tls().Enabled():
		log.Warn("passwords and tokens travel over the network in clear text; server-cert-file of http.conf enables TLS", "endpoint", c.Endpoint)
	}
}

// listen opens an address, with retries. It logs an error once, until the error
// changes. It returns nil if ctx ends.
func listen(ctx context.Context, endpoint string, log *slog.Logger) net.Listener {
	const most = 30 * time.Second
	logged := ""
	for wait := time.Second; ; wait = min(2*wait, most) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", endpoint)
		if err == nil {
			return l
		}
		if err.Error() != logged && ctx.Err() == nil {
			logged = err.Error()
			log.Warn("HTTP server cannot listen; it retries", "endpoint", endpoint, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// serve handles requests until ctx ends or the listener fails.
func (s *Server) serve(ctx context.Context, l net.Listener, log *slog.Logger) error {
	options := s.Options
	options.answerTime, options.Ended = s.Config.WriteTimeout, ctx.Done()
	options.maxNeed = needOfBody * s.Config.MaxBodyBytes
	var err error
	if options.guard, err = s.Config.guard(); err != nil {
		return fmt.Errorf("HTTP server: %w", err)
	}
	if options.guard == nil && s.Config.openedBy == "" {
		options.readOnly, options.Secrets = true, false // a file comes before the rights of an older agent
	}
	secure, err := s.Config.tls().Load()
	if err != nil {
		return fmt.Errorf("HTTP server: %w", err)
	}
	writeTimeout := s.Config.WriteTimeout
	if writeTimeout <= 0 {
		writeTimeout = deadline.Never
	}
	web := &http.Server{
		Handler:           deadline.Handler(s.Config.limitRate(s.Config.checkHost(Handler(options))), writeTimeout),
		TLSConfig:         secure,
		ReadTimeout:       max(0, s.Config.ReadTimeout),
		ReadHeaderTimeout: s.Config.ReadHeaderTimeout,
		WriteTimeout:      deadline.Never, // each request resets the deadline that the answer before has set
		IdleTimeout:       s.Config.IdleTimeout,
		MaxHeaderBytes:    s.Config.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		Protocols:         new(http.Protocols),
	}
	// A connection of HTTP/2 has many requests at once, whose headers and bodies take memory before anybody knows who
	// sends them. Nobody needs that here.
	web.Protocols.SetHTTP1(true)
	if err := conns.Serve(ctx, web, conns.Limit(l, s.Config.MaxConnections), nil); err != nil {
		return fmt.Errorf("HTTP server at %s: %w", s.Config.Endpoint, err)
	}
	return nil
}
