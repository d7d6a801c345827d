package session

import (
	"crypto/tls"
	"errors"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/tlsfiles"
)

// tlsSettings configure TLS to one kind of server. The zero value means no TLS.
type tlsSettings struct {
	Disabled optionalBool `yaml:"disabled"`
	// The client's certificate and its key, in PEM. Give both or none.
	CertFile string `yaml:"cert-file"`
	KeyFile  string `yaml:"key-file"`
	CAFile   string `yaml:"ca-file"`
	// Accepts any certificate. Another server on that address could then read the password.
	SkipVerify bool `yaml:"skip-verify"`
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
	return tlsfiles.Files{CA: t.CAFile, Cert: t.CertFile, Key: t.KeyFile, SkipVerify: t.SkipVerify}.Load()
}
