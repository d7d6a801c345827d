package consul_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/testkit"
)

// A server may want a certificate and a token, both of them.
func TestCertificateAndToken(t *testing.T) {
	t.Parallel()
	files := testkit.MakeCertificates(t)
	c := testkit.StartConsul(t, testkit.ConsulOptions{TLS: files, ACL: true})
	token, _ := join(t, c).token(mayWrite)
	good := consul.Config{Address: "https://" + c.AddrTLS, CAFile: files.CA, CertFile: files.Client.Cert, KeyFile: files.Client.Key, Token: token}
	client, err := consul.Dial(good)
	defer must(t, client, err).Close()
	must(t, client, client.Put(t.Context(), root+"a", []byte("1")))
	follow(t, connect(good)).Await("a", "1")

	for what, test := range map[string]struct {
		change func(*consul.Config)
		want   string
	}{
		"another token":  {func(c *consul.Config) { c.Token = "11111111-1111-1111-1111-111111111111" }, "403"},
		"no token":       {func(c *consul.Config) { c.Token = "" }, consul.ErrFiltered.Error()},
		"no certificate": {func(c *consul.Config) { c.CertFile, c.KeyFile = "", "" }, ""}, // whose absence the server may or may not get to tell
	} {
		cfg := good
		test.change(&cfg)
		if err := ended(t, connect(cfg), root); errors.Is(err, errNothing) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v; want %s", what, err, test.want)
		}
	}
}
