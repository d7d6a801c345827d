package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// served runs a gRPC server at an address until the test ends, and returns the address.
func served(t *testing.T, network, at string, options ...grpc.ServerOption) net.Addr {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, at)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	generic.RegisterMetaServiceServer(server, foreignMeta{})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	return listener.Addr()
}

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
	return served(t, "tcp", "127.0.0.1:0", grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}))).(*net.TCPAddr).Port
}

// TestDialGRPC connects with and without certificates. Flags are those of a command line.
func TestDialGRPC(t *testing.T) {
	certs := testkit.MakeCertificates(t)
	port := strconv.Itoa(guarded(t, certs))
	path := filepath.Join(t.TempDir(), "grpc.sock")
	served(t, "unix", path)
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
		{name: "a Unix socket", line: []string{"--grpc-socket", path}},
		{name: "a Unix socket without an agent", line: []string{"--grpc-socket", "s"}, failure: "no agent serves gRPC at s: is it running, and does its grpc.conf have this endpoint?"},
		{name: "a socket without an agent", line: []string{"--socket", "s"}, failure: "no agent listens at s: is it running?"},
	} {
		line := test.line
		if len(line) == 0 || line[0] == "--insecure-tls" {
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
	conn, err := s.DialGRPC(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = generic.NewMetaServiceClient(conn).KnownModels(ctx, &generic.KnownModelsRequest{})
	return s.ExplainGRPC(err)
}

// TestGRPCOfTheLabel chooses the agent's own socket unless the settings name an address.
func TestGRPCOfTheLabel(t *testing.T) {
	socket := socketOf(t) // of an agent without gRPC
	nobody := filepath.Join(filepath.Dir(socket), "none")
	for _, test := range []struct {
		name, socket string
		line         []string
		tls          tlsSettings
		want         string
	}{
		{name: "an agent listens there", socket: socket, want: socket},
		{name: "nobody listens there", socket: nobody, want: "127.0.0.1:9111"},
		{name: "a port is given", socket: socket, line: []string{"--grpc-port", "9112"}, want: "127.0.0.1:9112"},
		{name: "a port of HTTP is given: another agent may be meant", socket: socket, line: []string{"--http-port", "9192"}, want: "127.0.0.1:9111"},
		{name: "a host is given", socket: socket, line: []string{"-H", "10.0.0.1"}, want: "10.0.0.1:9111"},
		{name: "TLS, which the socket lacks", socket: socket, tls: tlsSettings{CAFile: testkit.MakeCertificates(t).CA}, want: "127.0.0.1:9111"},
		{name: "a socket of the gRPC server", socket: socket, line: []string{"--grpc-socket", "/run/g.sock"}, want: "/run/g.sock"},
		{name: "a socket of the gRPC server, and a host for HTTP", socket: socket, line: []string{"-H", "10.0.0.1", "--grpc-socket", "/run/g.sock"}, want: "/run/g.sock"},
		{name: "a socket and a port", socket: socket, line: []string{"--socket", "x", "--grpc-port", "9112"}, want: "127.0.0.1:9112"},
	} {
		s := loaded(t, test.line...)
		s.Socket, s.GRPCTLS = test.socket, test.tls
		conn, err := s.DialGRPC(t.Context())
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		conn.Close()
		if s.grpcName != test.want {
			t.Errorf("%s: %s; expected %s", test.name, s.grpcName, test.want)
		}
	}
	s := loaded(t, "--socket", socket)
	want := "the agent at " + socket + " lacks this call: this agent serves no gRPC"
	if err := known(t.Context(), s); err == nil || err.Error() != want {
		t.Errorf("without gRPC: %v", err)
	}
}
