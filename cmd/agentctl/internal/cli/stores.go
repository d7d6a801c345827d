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

// open returns the store that the settings name, and what ends its use.
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

func (s *settings) etcd() etcd.Config {
	return etcd.Config{
		Endpoints:         s.secured(s.Endpoints),
		DialTimeout:       s.DialTimeout,
		InsecureTransport: s.TLS.Disabled.is && !s.Insecure,
		InsecureSkip:      s.TLS.SkipVerify || s.Insecure,
		CertFile:          s.TLS.CertFile,
		KeyFile:           s.TLS.KeyFile,
		CAFile:            s.TLS.CAFile,
	}
}

// secured are the endpoints as URLs that ask for TLS, if the settings do.
func (s *settings) secured(endpoints []string) []string {
	if !s.Insecure && !s.TLS.wanted() {
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

// explained says who it was that did not answer, and how to ask somebody else.
func (s *settings) explained(err error) error {
	if errors.Is(err, kvdb.ErrNoStore) {
		return fmt.Errorf("%w: --store names another; --store etcd is reached without the agent", err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if s.Store == "etcd" {
		return fmt.Errorf("etcd at %s does not answer: %w", strings.Join(s.Endpoints, ", "), err)
	}
	return fmt.Errorf("the agent does not answer: %w", err)
}
