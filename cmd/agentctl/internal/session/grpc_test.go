package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// guarded runs a gRPC server that accepts only clients with a certificate, and returns its port.
func guarded(t *testing.T, certs *testkit.Certificates) int {
	t.Helper()
	own, err := tls.LoadX509KeyPair(certs.Server.Cert, certs.Server.Key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(certs.CA)
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(text)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	})))
	generic.RegisterMetaServiceServer(server, foreignMeta{})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	return listener.Addr().(*net.TCPAddr).Port
}

// TestDialGRPC connects with and without certificates. Flags are those of a command line.
func TestDialGRPC(t *testing.T) {
	certs := testkit.MakeCertificates(t)
	port := strconv.Itoa(guarded(t, certs))
	for _, test := range []struct {
		name    string
		tls     tlsSettings
		line    []string
		failure string // part of the error; empty: none
	}{
		{name: "a certificate", tls: tlsSettings{CAFile: certs.CA, CertFile: certs.Client.Cert, KeyFile: certs.Client.Key}},
		{name: "without verification", tls: tlsSettings{CertFile: certs.Client.Cert, KeyFile: certs.Client.Key}, line: []string{"--insecure-tls"}},
		{name: "disabled, but the flag counts", tls: tlsSettings{Disabled: optionalBool{true, true}, CertFile: certs.Client.Cert, KeyFile: certs.Client.Key}, line: []string{"--insecure-tls"}},
		{name: "no certificate", tls: tlsSettings{CAFile: certs.CA}, failure: "agent at 127.0.0.1:" + port + ": "},
		{name: "an unknown authority", tls: tlsSettings{CertFile: certs.Client.Cert, KeyFile: certs.Client.Key}, failure: "certificate"},
		{name: "no TLS", failure: "agent at 127.0.0.1:" + port + ": "},
		{name: "no such file", tls: tlsSettings{CAFile: "none.pem"}, failure: "grpc-tls: ca-file: open none.pem"},
		{name: "a socket was chosen", line: []string{"--socket", "s"}, failure: "which does not serve gRPC: expected --grpc-port"},
	} {
		line := test.line
		if len(line) == 0 || line[0] != "--socket" {
			line = append(line, "--grpc-port", port)
		}
		s := loaded(t, line...)
		s.GRPCTLS = test.tls
		err := known(t.Context(), s)
		switch {
		case test.failure == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.failure != "" && (err == nil || !strings.Contains(err.Error(), test.failure)):
			t.Errorf("%s: %v; expected %q", test.name, err, test.failure)
		}
	}
}

// known calls the agent once.
func known(ctx context.Context, s *Session) error {
	conn, err := s.DialGRPC()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = generic.NewMetaServiceClient(conn).KnownModels(ctx, &generic.KnownModelsRequest{})
	return s.ExplainGRPC(err)
}
