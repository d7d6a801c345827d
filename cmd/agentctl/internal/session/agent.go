package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"github.com/keyplane/keyplane/internal/reach"
)

// ErrNoAgent reports that no process listens where the settings expect the agent. Commands that
// can do without an agent then do.
var ErrNoAgent = errors.New("no agent listens")

// An agentClient sends requests to the agent's HTTP server, over TCP or over the agent's
// Unix socket.
type agentClient struct {
	url.URL
	name string // host and port, or the path of the socket; for messages
	hint string // question for the user if no agent listens there
	most int64  // bytes of an answer
	// It has no timeout of its own: the context of the command ends each request.
	http http.Client
}

// agent returns a client for the agent that the settings name. Without a socket, a host and a
// port, that is the agent that listens on the socket of the label. Only if there is none, it is
// the HTTP server on the loopback: another agent on this host may have it.
func (s *settings) agent(ctx context.Context) (*agentClient, error) {
	if s.bySocket || !s.byHTTP && reach.Listens(ctx, s.Socket) {
		return s.agentBySocket(), nil
	}
	at := net.JoinHostPort(s.Host, strconv.Itoa(s.HTTPPort))
	out := &agentClient{URL: url.URL{Scheme: "http", Host: at}, name: at, hint: "is it running, and does its http.conf have this endpoint?", most: mostAnswer}
	out.http.CheckRedirect = noRedirect
	if !s.byHTTP {
		out.name, out.hint = at+" or "+s.Socket, "is it running?"+labHere(ctx)
	}
	if security := s.httpTLS(); security.enabled() {
		config, err := security.config()
		if err != nil {
			return nil, fmt.Errorf("http-tls: %w", err)
		}
		out.Scheme = "https"
		out.http.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config}
	}
	// A password may have colons; the name may not (RFC 7617).
	if user, password, given := strings.Cut(s.HTTPAuth, ":"); given {
		out.User = url.UserPassword(user, password)
	}
	return out, nil
}

// labSocket is the socket of the agent of make run, in the folder of the sources.
const labSocket = ".run/agent.sock"

// labHere says how to ask the agent of make run in this folder; empty: there is none. That variable is easily forgotten in
// a second terminal.
func labHere(ctx context.Context) string {
	if !reach.Listens(ctx, labSocket) {
		return ""
	}
	return " That of make run listens here: export AGENTCTL_SOCKET=" + labSocket
}

// agentBySocket returns a client for the agent behind the socket. The host in the URL is
// arbitrary: each connection goes to the socket.
func (s *settings) agentBySocket() *agentClient {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return reach.Dial(ctx, s.Socket)
	}
	return &agentClient{
		url.URL{Scheme: "http", Host: "localhost"}, s.Socket, "is it running?", mostAnswer,
		http.Client{Transport: &http.Transport{DialContext: dial}, CheckRedirect: noRedirect},
	}
}

// noRedirect refuses to follow a redirect. An agent answers none, and to follow one would send the values of the request
// to a host that nobody has named.
func noRedirect(to *http.Request, _ []*http.Request) error {
	return fmt.Errorf("the answer is a redirect to %s, which is not followed: expected the address of the agent itself", to.URL.Redacted())
}

// httpTLS returns the TLS settings for HTTP. The flag --insecure-tls overrides the
// configuration file, also one that disables TLS.
func (s *settings) httpTLS() tlsSettings {
	return s.overridden(s.HTTPTLS)
}

// overridden returns t, or TLS without verification for --insecure-tls.
func (s *settings) overridden(t tlsSettings) tlsSettings {
	if s.Insecure {
		t.Disabled, t.SkipVerify = optionalBool{}, true
	}
	return t
}

// requestError explains an error of the transport. It drops the method and URL, which
// url.Error adds and which mean nothing to users, and names the agent instead.
func (at *agentClient) requestError(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	// The server spoke another protocol than TLS, usually plain HTTP.
	_, foreign := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w at %s: %s", ErrNoAgent, at.name, at.hint)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("agent at %s: %w: %s", at.name, fs.ErrPermission, reach.Closed)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the agent at %s does not answer in time: %w", at.name, err)
	case foreign || strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return fmt.Errorf("the server at %s does not speak TLS: %w", at.name, err)
	}
	return fmt.Errorf("agent at %s: %w", at.name, err)
}
