package sender_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/sender"
)

// accepted returns the server's side of a connection.
func accepted(t *testing.T, network, address string) net.Conn {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); c.Close() })
	return c
}

func TestSenderOfSocket(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	ctx := sender.OfConn(t.Context(), accepted(t, "unix", filepath.Join(t.TempDir(), "s")))
	if got, want := sender.Of(ctx), fmt.Sprintf("%s (pid %d)", me.Username, os.Getpid()); got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}

func TestSenderOfTCP(t *testing.T) {
	c := accepted(t, "tcp", "127.0.0.1:0")
	ctx := sender.OfConn(t.Context(), c)
	if got := sender.Of(ctx); got != c.RemoteAddr().String() {
		t.Errorf("it is %q, want %v", got, c.RemoteAddr())
	}
	if got := sender.Of(sender.Named(ctx, strings.Repeat("é", 100))); !strings.HasSuffix(got, "é… from "+c.RemoteAddr().String()) || len(got) > 200 {
		t.Errorf("a user is %q", got)
	}
}

// Authorities of machines issue certificates without a common name.
func TestSenderOfCertificate(t *testing.T) {
	number := big.NewInt(4711)
	machine := &url.URL{Scheme: "spiffe", Host: "example.org", Path: "/deployer"}
	for _, test := range []struct {
		certificate x509.Certificate
		want        string
	}{
		{x509.Certificate{Subject: pkix.Name{CommonName: "anna"}, DNSNames: []string{"host"}}, "anna"},
		{x509.Certificate{DNSNames: []string{"host", "other"}, URIs: []*url.URL{machine}}, "spiffe://example.org/deployer"},
		{x509.Certificate{DNSNames: []string{"host", "other"}, EmailAddresses: []string{"anna@host"}}, "host"},
		{x509.Certificate{EmailAddresses: []string{"anna@host"}}, "anna@host"},
		{x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}, SerialNumber: number}, "10.0.0.1"},
		{x509.Certificate{SerialNumber: number}, "serial number 4711"},
	} {
		if got := sender.OfCertificate(&test.certificate); got != "certificate of "+test.want {
			t.Errorf("it is %q, want the certificate of %s", got, test.want)
		}
	}
}

func TestNoSender(t *testing.T) {
	if got := sender.Of(context.Background()); got != "" {
		t.Errorf("it is %q", got)
	}
	if got := sender.Of(sender.Named(context.Background(), "anna")); got != "anna" {
		t.Errorf("it is %q", got)
	}
}
