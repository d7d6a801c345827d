package redis

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// config returns nil for connections without.
func (t TLS) config() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.SkipVerify}
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
		return nil, fmt.Errorf("tls.ca-file: %s has no certificate: want PEM", t.CAFile)
	}
	return cfg, nil
}
