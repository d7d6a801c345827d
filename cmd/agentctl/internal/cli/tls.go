package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
)

// tlsSettings configure TLS to one kind of server. The zero value means no TLS.
type tlsSettings struct {
	Disabled   optionalBool `yaml:"disabled"`
	CertFile   string       `yaml:"cert-file"`
	KeyFile    string       `yaml:"key-file"`
	CAFile     string       `yaml:"ca-file"`
	SkipVerify bool         `yaml:"skip-verify"`
}

// optionalBool distinguishes false from absent: "disabled: false" alone enables TLS.
type optionalBool struct{ set, value bool }

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *optionalBool) UnmarshalYAML(n *yaml.Node) error {
	if err := n.Decode(&s.value); err != nil {
		return errors.New("expected true or false")
	}
	s.set = true
	return nil
}

// enabled reports whether some setting asks for TLS and none disables it.
func (t tlsSettings) enabled() bool {
	return t != tlsSettings{} && !t.Disabled.value
}

// config returns the client configuration, with the certificates loaded. Without a CA file
// the CAs of this host are used.
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
