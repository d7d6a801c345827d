package etcd_test

import (
	"crypto/tls"
	"log/slog"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
)

// A server may want a certificate and a user, both of them.
func TestCertificateAndUser(t *testing.T) {
	t.Parallel()
	files := testkit.MakeCertificates(t)
	e := testkit.StartEtcd(t, testkit.EtcdOptions{TLS: true, Args: []string{
		"--cert-file=" + files.Server.Cert, "--key-file=" + files.Server.Key,
		"--trusted-ca-file=" + files.CA, "--client-cert-auth",
	}})
	pair, err := tls.LoadX509KeyPair(files.Client.Cert, files.Client.Key)
	if err != nil {
		t.Fatal(err)
	}
	allowAgent(t, bareClient(t, clientv3.Config{
		Endpoints: []string{e.Endpoint}, TLS: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true},
	}))
	good := etcd.Config{
		Endpoints: []string{e.Addr}, CAFile: files.CA, CertFile: files.Client.Cert, KeyFile: files.Client.Key,
		Username: "agent", Password: "secret", DialTimeout: testkit.Patience, // a password takes long to check
	}
	client, err := etcd.Dial(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Put(t.Context(), root+"a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	follow(t, etcd.New(good, slog.New(slog.DiscardHandler))).Await("a", "1")

	for what, test := range map[string]struct {
		change func(*etcd.Config)
		want   string
	}{
		"another password": {func(c *etcd.Config) { c.Password = "guess" }, "authentication failed, invalid user ID or password"},
		"no certificate":   {func(c *etcd.Config) { c.CertFile, c.KeyFile = "", "" }, ""}, // whose absence the server may or may not get to tell
	} {
		cfg := good
		test.change(&cfg)
		for b, err := range etcd.New(cfg, slog.New(slog.DiscardHandler)).Watch(t.Context(), root) {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %+v, %v; want %s", what, b, err, test.want)
			}
		}
	}
}
