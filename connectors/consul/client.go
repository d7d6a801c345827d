package consul

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/internal/tlsfiles"
	"github.com/keyplane/keyplane/internal/userinfo"
	"github.com/keyplane/keyplane/kvdbsync"
)

// The kernel's keepalive probes find a dead host and cost an idle agent nothing. probe.go
// finds the other failures.
const (
	tcpProbeAfter = 3 * time.Second
	tcpProbeEvery = time.Second
	tcpProbes     = 3
)

// A client sends requests to Consul. Each request carries the token valid at that moment.
type client struct {
	cfg Config
	api *api.Client
	// base is the library's configuration, made from Config and the environment.
	base *api.Config
	// lists is for listings. It has one connection; the library uses others.
	lists *http.Client
	heard kvdbsync.Pulse // counts the bytes received by listings
}

// newClient returns a client that the caller owns alone. It does not connect.
func newClient(cfg Config) (*client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("consul configuration: %w", err)
	}
	base, err := cfg.base()
	if err != nil {
		return nil, fmt.Errorf("consul configuration: %w", err)
	}
	lists := transport(base.Transport.TLSClientConfig, base.Address)
	lists.MaxConnsPerHost = 1
	// A watch pauses for as long as its pace and its receiver ask, and must then find the connection
	// of the last answer again.
	lists.IdleConnTimeout = 0
	library, err := api.NewClient(base)
	if err != nil {
		return nil, fmt.Errorf("consul configuration: %w", err)
	}
	return &client{cfg: cfg, api: library, base: base, lists: &http.Client{Transport: lists, CheckRedirect: sameHost}}, nil
}

// sameHost refuses redirects to another host or to clear text, because requests carry the
// token.
func sameHost(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
		return fmt.Errorf("not following a redirect to %s://%s: requests carry the ACL token", next.URL.Scheme, next.URL.Host)
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// base combines the configuration with the environment. The configuration takes
// precedence.
func (c Config) base() (*api.Config, error) {
	b := api.DefaultConfig()
	// The library would take a final slash for a path, and ask for //v1/...
	b.Address = strings.TrimRight(cmp.Or(c.Address, b.Address), "/")
	if userinfo.In(b.Address) {
		return nil, fmt.Errorf("CONSUL_HTTP_ADDR: %q: %w", userinfo.Hidden(b.Address), errUser)
	}
	b.Datacenter = c.Datacenter
	b.Namespace = cmp.Or(c.Namespace, b.Namespace)
	b.Partition = cmp.Or(c.Partition, b.Partition)
	if c.CertFile != "" || c.CAFile != "" || c.InsecureSkip {
		b.Scheme = "https"
	}
	b.TLSConfig.CertFile = cmp.Or(c.CertFile, b.TLSConfig.CertFile)
	b.TLSConfig.KeyFile = cmp.Or(c.KeyFile, b.TLSConfig.KeyFile)
	b.TLSConfig.CAFile = cmp.Or(c.CAFile, b.TLSConfig.CAFile)
	b.TLSConfig.Address = cmp.Or(c.ServerName, b.TLSConfig.Address)
	b.TLSConfig.InsecureSkipVerify = c.InsecureSkip || b.TLSConfig.InsecureSkipVerify
	security, err := tlsConfig(&b.TLSConfig)
	if err != nil {
		return nil, err
	}
	b.Transport = transport(security, b.Address)
	b.Transport.IdleConnTimeout = 4 * c.ProbeInterval // probes share a connection
	b.HttpClient = &http.Client{Transport: announcing{b.Transport, c.Bounds}, CheckRedirect: sameHost}
	b.Token, err = c.token()
	b.TokenFile = "" // this package reads the file, not the library
	return b, err
}

// tlsConfig loads the files of the configuration and the environment. The library adds the
// server's name and a folder of authorities (CONSUL_CAPATH). The client's certificate is
// read for each connection, since it may have been renewed.
func tlsConfig(from *api.TLSConfig) (*tls.Config, error) {
	files := tlsfiles.Files{CA: from.CAFile, Cert: from.CertFile, Key: from.KeyFile}
	if _, err := files.Load(); err != nil {
		return nil, err
	}
	out, err := api.SetupTLSConfig(from)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if files.Cert != "" {
		out.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := files.Pair()
			return &pair, err
		}
	}
	return out, nil
}

// transport disables compression. Compression costs the server more time than it saves,
// especially if the server is the Consul agent on the same host.
func transport(security *tls.Config, address string) *http.Transport {
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: tcpProbeAfter, Interval: tcpProbeEvery, Count: tcpProbes,
	}}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: security,
		DisableCompression: true, ExpectContinueTimeout: 10 * time.Second,
	}
	if socket, ok := strings.CutPrefix(address, "unix://"); ok {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		}
	}
	return t
}

// announcing sends "Expect: 100-continue" before a large body. Otherwise Consul would
// close the connection during a body that is too large, and the reason would be lost. It
// also limits the size of the answers, because the library reads them whole.
type announcing struct {
	*http.Transport
	bounds kvdbsync.Bounds
}

const (
	largeBody = 128 << 10
	// answerSize is the maximum size of an answer to the library, in addition to one value
	// in base64. The library requests one value at a time, or a short list of names.
	answerSize = 1 << 20
)

// RoundTrip implements http.RoundTripper.
func (a announcing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.ContentLength > largeBody {
		r = r.Clone(r.Context())
		r.Header.Set("Expect", "100-continue")
	}
	answer, err := a.Transport.RoundTrip(r)
	if err == nil {
		limit := min(a.bounds.Page, 2*a.bounds.Value+answerSize)
		answer.Body = &boundedBody{answer.Body, limit, a.bounds}
		switch {
		case answer.StatusCode == http.StatusConflict: // a list of the refused changes
			answer.Body = cutBody(answer.Body, maxConflict)
		case answer.StatusCode >= http.StatusBadRequest:
			answer.Body = cutBody(answer.Body, maxErrorBody)
		}
	}
	return answer, err
}

// The library puts the whole body of an error into its text.
const (
	maxErrorBody = 1000
	maxConflict  = 64 << 10
)

// cutBody returns the beginning of a body.
func cutBody(body io.ReadCloser, most int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, most), body}
}

// close closes connections that are not in use; those of running requests end with them.
func (c *client) close() {
	c.lists.CloseIdleConnections()
	c.base.HttpClient.CloseIdleConnections()
}
