package stores

import (
	"crypto/tls"
	"os"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/tlsfiles"
)

// rotateCertificates replaces all certificate files by those of another authority.
func rotateCertificates(t testing.TB, c *testkit.Certificates) {
	t.Helper()
	next := testkit.MakeCertificates(t)
	for to, from := range map[string]string{
		c.CA: next.CA, c.Server.Cert: next.Server.Cert, c.Server.Key: next.Server.Key,
		c.Client.Cert: next.Client.Cert, c.Client.Key: next.Client.Key,
	} {
		content, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// clientTLS returns the configuration of a client with the present client certificate.
func clientTLS(t testing.TB, c *testkit.Certificates) *tls.Config {
	t.Helper()
	config, err := tlsfiles.Files{CA: c.CA, Cert: c.Client.Cert, Key: c.Client.Key}.Load()
	if err != nil {
		t.Fatal(err)
	}
	return config
}
