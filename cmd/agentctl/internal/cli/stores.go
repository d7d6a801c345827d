package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// open connects to the configured store. The caller calls end after use.
func (a *app) open(ctx context.Context) (s kvdbsync.Store, end func(), err error) {
	if a.Store != "etcd" {
		c := kvdb.NewClient(a.Socket, a.Store)
		return c, c.Close, nil
	}
	cfg := a.etcd()
	if err := cfg.Validate(); err != nil {
		return nil, nil, fmt.Errorf("etcd: %w", err)
	}
	c, err := etcd.Dial(ctx, cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("etcd: %w", err)
	}
	return c, func() { c.Close() }, nil
}

// etcd returns the configuration of the etcd client.
func (s *settings) etcd() etcd.Config {
	return etcd.Config{
		Endpoints:         s.tlsEndpoints(s.Endpoints),
		DialTimeout:       s.DialTimeout,
		InsecureTransport: s.TLS.Disabled.value && !s.Insecure,
		InsecureSkip:      s.TLS.SkipVerify || s.Insecure,
		CertFile:          s.TLS.CertFile,
		KeyFile:           s.TLS.KeyFile,
		CAFile:            s.TLS.CAFile,
	}
}

// tlsEndpoints returns the endpoints as https URLs if TLS is enabled. The etcd client
// chooses TLS by the scheme.
func (s *settings) tlsEndpoints(endpoints []string) []string {
	if !s.Insecure && !s.TLS.enabled() {
		return endpoints
	}
	var out []string
	for _, e := range endpoints {
		if !strings.Contains(e, "://") {
			e = "https://" + e
		}
		out = append(out, e)
	}
	return out
}

// explainStoreError names the server that did not answer, and other ways to reach the store.
func (s *settings) explainStoreError(err error) error {
	if errors.Is(err, kvdb.ErrNoStore) {
		return fmt.Errorf("%w: --store selects another; --store etcd needs no agent", err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if s.Store == "etcd" {
		return fmt.Errorf("etcd at %s does not answer: %w", strings.Join(s.Endpoints, ", "), err)
	}
	return fmt.Errorf("the agent does not answer: %w", err)
}
