package consul_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

func startWithACL(t *testing.T) *server {
	t.Helper()
	return join(t, testkit.StartConsul(t, testkit.ConsulOptions{ACL: true}))
}

// token makes a token that has these rules.
func (s *server) token(rules string) (secret string, policy *api.ACLPolicy) {
	s.t.Helper()
	policy, _, err := s.client.ACL().PolicyCreate(&api.ACLPolicy{Name: "policy" + time.Now().Format("150405.000000000")[7:], Rules: rules}, nil)
	must(s.t, policy, err)
	token, _, err := s.client.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
	return must(s.t, token, err).SecretID, policy
}

func (s *server) configFor(token string) consul.Config {
	cfg := s.config()
	cfg.Token = token
	return cfg
}

const (
	mayRead  = `key_prefix "vnf-agent/vpp1/" { policy = "read" }`
	mayWrite = `key_prefix "vnf-agent/vpp1/" { policy = "write" } session_prefix "" { policy = "write" }`
)

func TestACL(t *testing.T) {
	t.Parallel()
	s := startWithACL(t)
	s.put(root+"a", "1")
	reader, _ := s.token(mayRead)
	file := filepath.Join(t.TempDir(), "token")
	must(t, file, os.WriteFile(file, []byte(reader+"\n"), 0o600))
	inFile := s.config()
	inFile.TokenFile = file

	t.Run("token", func(t *testing.T) { follow(t, connect(s.configFor(reader))).Await("a", "1") })
	t.Run("file", func(t *testing.T) { follow(t, connect(inFile)).Await("a", "1") })
	t.Run("unknown token", func(t *testing.T) {
		err := ended(t, connect(s.configFor("11111111-1111-1111-1111-111111111111")), root)
		var status api.StatusError
		if !errors.As(err, &status) || status.Code != 403 {
			t.Errorf("ended with %v", err)
		}
	})
	// Consul shows nothing of what may not be read. That must not look like an empty store.
	for name, cfg := range map[string]consul.Config{"no token": s.config(), "a token for something else": s.configFor(reader)} {
		t.Run(name, func(t *testing.T) {
			s.put("/vnf-agent/vpp2/a", "1")
			if err := ended(t, connect(cfg), "/vnf-agent/vpp2/"); !errors.Is(err, consul.ErrFiltered) {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// A right that is taken away takes no key away, and one that is given again is used.
func TestRightsComeAndGo(t *testing.T) {
	t.Parallel()
	s := startWithACL(t)
	s.put(root+"a", "1")
	s.put(root+"b", "1")
	secret, policy := s.token(mayRead)
	cfg := s.configFor(secret)
	cfg.WaitTime = 200 * time.Millisecond // after which Consul looks at the token again
	m := follow(t, connect(cfg))
	m.Await("a", "1", "b", "1")
	policy.Rules = `key_prefix "vnf-agent/vpp1/a" { policy = "read" }`
	_, _, err := s.client.ACL().PolicyUpdate(policy, nil)
	must(t, policy, err)
	if err := m.AwaitLost(conformance.Any); !errors.Is(err, consul.ErrFiltered) {
		t.Errorf("lost for %v", err)
	}
	if keys := m.Source.Health().Keys; keys != 2 {
		t.Errorf("%d keys are left of 2", keys)
	}
	s.put(root+"c", "1")
	policy.Rules = mayRead
	_, _, err = s.client.ACL().PolicyUpdate(policy, nil)
	must(t, policy, err)
	m.Await("a", "1", "b", "1", "c", "1")
}

// A token file is read for each request: also a client that lives long follows it.
func TestTokenIsChanged(t *testing.T) {
	t.Parallel()
	s := startWithACL(t)
	first, _ := s.token(mayWrite)
	second, _ := s.token(mayWrite)
	cfg := s.config()
	cfg.TokenFile = filepath.Join(t.TempDir(), "token")
	must(t, first, os.WriteFile(cfg.TokenFile, []byte(first), 0o600))
	client, err := consul.Dial(cfg)
	defer must(t, client, err).Close()
	must(t, first, client.Put(t.Context(), root+"a", []byte("1")))
	session, err := connect(cfg).Session(t.Context(), 0)
	must(t, session, err)
	m := follow(t, connect(cfg))
	m.Await("a", "1")

	must(t, second, os.WriteFile(cfg.TokenFile, []byte(second), 0o600))
	_, err = s.client.ACL().TokenDelete(accessor(t, s, first), nil)
	must(t, first, err)
	must(t, second, client.Put(t.Context(), root+"a", []byte("2")))
	m.Await("a", "2")
	must(t, second, session.Close(t.Context()))

	must(t, second, os.Remove(cfg.TokenFile))
	if err := client.Put(t.Context(), root+"a", nil); err == nil || !strings.Contains(err.Error(), "token-file: open "+cfg.TokenFile) {
		t.Errorf("without the file: %v", err)
	}
}

func accessor(t *testing.T, s *server, secret string) string {
	t.Helper()
	token, _, err := s.client.ACL().TokenReadSelf(&api.QueryOptions{Token: secret})
	return must(t, token, err).AccessorID
}

func TestTLS(t *testing.T) {
	t.Parallel()
	files := testkit.MakeCertificates(t)
	c := testkit.StartConsul(t, testkit.ConsulOptions{TLS: files})
	good := consul.Config{Address: c.AddrTLS, CAFile: files.CA, CertFile: files.Client.Cert, KeyFile: files.Client.Key}
	client, err := consul.Dial(good)
	defer must(t, client, err).Close()
	must(t, client, client.Put(t.Context(), root+"a", []byte("1")))
	follow(t, connect(good)).Await("a", "1")

	url := good
	url.Address = "https://" + c.AddrTLS
	follow(t, connect(url)).Await("a", "1")

	unchecked := good
	unchecked.CAFile, unchecked.InsecureSkip = "", true
	follow(t, connect(unchecked)).Await("a", "1")

	refused := map[string]struct {
		change func(*consul.Config)
		want   string
	}{
		"unknown authority": {func(c *consul.Config) { c.CAFile = "" }, "certificate signed by unknown authority"},
		"no certificate":    {func(c *consul.Config) { c.CertFile, c.KeyFile = "", "" }, ""}, // whose absence the server may or may not get to tell
		"other name":        {func(c *consul.Config) { c.ServerName = "consul.example" }, "consul.example"},
		"plain text":        {func(c *consul.Config) { *c = consul.Config{Address: c.Address} }, "HTTP request to an HTTPS server"},
	}
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			cfg := good
			test.change(&cfg)
			if err := ended(t, connect(cfg), root); errors.Is(err, errNothing) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want %s", err, test.want)
			}
		})
	}
}

// The certificate is renewed while a client lives; new connections have the new one.
func TestCertificateIsRotated(t *testing.T) {
	t.Parallel()
	old, renewed := testkit.MakeCertificates(t), testkit.MakeCertificates(t)
	c := testkit.StartConsul(t, testkit.ConsulOptions{TLS: renewed})
	cfg := consul.Config{Address: c.AddrTLS, CAFile: renewed.CA, CertFile: old.Client.Cert, KeyFile: old.Client.Key}
	client, err := consul.Dial(cfg)
	defer must(t, client, err).Close()
	if err := client.Put(t.Context(), root+"a", []byte("1")); err == nil {
		t.Fatal("the server takes a certificate of another authority")
	}
	must(t, c, os.Rename(renewed.Client.Cert, old.Client.Cert))
	must(t, c, os.Rename(renewed.Client.Key, old.Client.Key))
	must(t, c, client.Put(t.Context(), root+"a", []byte("1")))
}
