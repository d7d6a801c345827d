package cli

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

	"github.com/keyplane/keyplane/northbound/kvdb"
)

// An agentAt is how the agent is reached by commands that look at it.
type agentAt struct {
	url.URL
	name   string // for people
	ask    string // what people are asked where nobody listens
	client http.Client
}

// agent says where the settings say that it is.
func (s *settings) agent() (*agentAt, error) {
	if s.bySocket {
		return s.agentBehindSocket(), nil
	}
	at := net.JoinHostPort(s.Host, strconv.Itoa(s.HTTPPort))
	out := &agentAt{URL: url.URL{Scheme: "http", Host: at}, name: at, ask: "is it running, and is its http.conf the same?"}
	if security := s.httpTLS(); security.wanted() {
		config, err := security.config()
		if err != nil {
			return nil, fmt.Errorf("http-tls: %w", err)
		}
		out.Scheme = "https"
		out.client.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config}
	}
	if user, password, given := strings.Cut(s.HTTPAuth, ":"); given {
		out.User = url.UserPassword(user, password)
	}
	return out, nil
}

func (s *settings) agentBehindSocket() *agentAt {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return kvdb.Dial(ctx, s.Socket)
	}
	return &agentAt{
		url.URL{Scheme: "http", Host: "localhost"}, s.Socket, "is it running?",
		http.Client{Transport: &http.Transport{DialContext: dial}},
	}
}

func (s *settings) httpTLS() tlsSettings {
	out := s.HTTPTLS
	if s.Insecure {
		out.Disabled, out.SkipVerify = said{}, true
	}
	return out
}

// unanswered says who it was that did not answer, without the request, which says
// nothing to people.
func (at *agentAt) unanswered(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	_, foreign := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no agent listens at %s: %s", at.name, at.ask)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the agent at %s does not answer in time: %w", at.name, err)
	case foreign || strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return fmt.Errorf("what listens at %s knows no TLS: %w", at.name, err)
	}
	return fmt.Errorf("agent at %s: %w", at.name, err)
}
