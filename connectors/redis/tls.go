package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
)

// dial opens a connection, with TLS if that is enabled.
func (t TLS) dial(ctx context.Context, plain *net.Dialer, network, addr string) (net.Conn, error) {
	cfg, err := t.config()
	switch {
	case err != nil:
		return nil, err
	case cfg == nil:
		return plain.DialContext(ctx, network, addr)
	}
	return (&tls.Dialer{NetDialer: plain, Config: cfg}).DialContext(ctx, network, addr)
}

// config returns nil for connections without.
func (t TLS) config() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.SkipVerify} //nolint:gosec // the user asks for it by name; the default is to verify
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls.cert-file and tls.key-file: %w", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	if t.CAFile == "" {
		return cfg, nil
	}
	text, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("tls.ca-file: %w", err)
	}
	cfg.RootCAs = x509.NewCertPool()
	if !cfg.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("tls.ca-file: %s has no certificate: expected PEM", t.CAFile)
	}
	return cfg, nil
}
