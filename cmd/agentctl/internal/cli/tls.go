package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
)

// tlsSettings are about TLS with one kind of server.
type tlsSettings struct {
	Disabled   said   `yaml:"disabled"`
	CertFile   string `yaml:"cert-file"`
	KeyFile    string `yaml:"key-file"`
	CAFile     string `yaml:"ca-file"`
	SkipVerify bool   `yaml:"skip-verify"`
}

// said is a bool that knows whether it was said.
type said struct{ given, is bool }

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *said) UnmarshalYAML(n *yaml.Node) error {
	if err := n.Decode(&s.is); err != nil {
		return errors.New("expected true or false")
	}
	s.given = true
	return nil
}

// wanted tells whether anything asks for TLS and nothing forbids it.
func (t tlsSettings) wanted() bool {
	return t != tlsSettings{} && !t.Disabled.is
}

// config is what net/http needs.
func (t tlsSettings) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.SkipVerify} //nolint:gosec // the user asks for it by name; the default is to verify
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca-file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca-file: %s: expected certificates in PEM", t.CAFile)
		}
	}
	if t.CertFile == "" && t.KeyFile == "" {
		return c, nil
	}
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("cert-file %q, key-file %q: %w", t.CertFile, t.KeyFile, err)
	}
	c.Certificates = []tls.Certificate{cert}
	return c, nil
}
