package tlsfiles_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/tlsfiles"
)

// TestServer has a server that verifies its clients, and reads renewed files.
func TestServer(t *testing.T) {
	if c, err := (tlsfiles.Server{}).Load(); c != nil || err != nil {
		t.Errorf("without TLS: %v, %v", c, err)
	}
	files := testkit.MakeCertificates(t)
	c, err := tlsfiles.Server{Cert: files.Server.Cert, Key: files.Server.Key, ClientCAs: []string{files.CA}}.Load()
	if err != nil || c.ClientAuth != tls.RequireAndVerifyClientCert || c.ClientCAs == nil || len(c.Certificates) != 1 || c.MinVersion != tls.VersionTLS12 {
		t.Fatalf("got %+v, %v", c, err)
	}
	if again, err := c.GetConfigForClient(nil); err != nil || len(again.Certificates) != 1 {
		t.Errorf("at a handshake: %v, %v", again, err)
	}
	if err := os.Remove(files.CA); err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetConfigForClient(nil); err == nil {
		t.Error("a handshake does not read the files again")
	}
}

func TestServerErrorsNameKeyAndFile(t *testing.T) {
	files := testkit.MakeCertificates(t)
	garbage := filepath.Join(t.TempDir(), "garbage.pem")
	if err := os.WriteFile(garbage, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := files.Server.Cert, files.Server.Key
	for name, test := range map[string]struct {
		server tlsfiles.Server
		want   string
	}{
		"clients alone":     {tlsfiles.Server{ClientCAs: []string{files.CA}}, "ca-files: a server that verifies clients needs cert-file and key-file"},
		"certificate alone": {tlsfiles.Server{Cert: "c", CertName: "server-cert-file"}, `server-cert-file "c", key-file "": expected both or neither`},
		"key missing":       {tlsfiles.Server{Cert: cert, Key: "/nowhere/k"}, "key-file: open /nowhere/k: no such file or directory"},
		"pair without PEM": {tlsfiles.Server{Cert: garbage, Key: key},
			"cert-file " + garbage + " and key-file " + key + ": tls: failed to find any PEM data in certificate input"},
		"CA without PEM": {tlsfiles.Server{Cert: cert, Key: key, ClientCAs: []string{files.CA, garbage}}, "ca-files[1]: " + garbage + " has no certificate: expected PEM"},
		"CA missing": {tlsfiles.Server{Cert: cert, Key: key, ClientCAs: []string{"/nowhere/ca"}, CAName: "client-cert-files"},
			"client-cert-files[0]: open /nowhere/ca: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := test.server.Load(); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
