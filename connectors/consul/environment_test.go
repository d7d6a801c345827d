package consul_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/testkit"
)

// All tests that set the environment share one server and run alone. All other tests of the
// package run beside each other.
func TestEnvironment(t *testing.T) {
	files := testkit.MakeCertificates(t)
	s := join(t, testkit.StartConsul(t, testkit.ConsulOptions{TLS: files, ACL: true}))
	s.put(root+"a", "1")
	reader, _ := s.token(mayRead)
	file := filepath.Join(t.TempDir(), "token")
	must(t, file, os.WriteFile(file, []byte(reader+"\n"), 0o600))

	for name, test := range map[string]struct {
		environment map[string]string
		cfg         consul.Config
	}{
		"token":         {map[string]string{"CONSUL_HTTP_TOKEN": reader}, s.config()},
		"file":          {map[string]string{"CONSUL_HTTP_TOKEN_FILE": file}, s.config()},
		"configuration": {map[string]string{"CONSUL_HTTP_TOKEN_FILE": "/nowhere/token"}, s.configFor(reader)}, // comes first
		"address":       {map[string]string{"CONSUL_HTTP_ADDR": s.consul.Addr}, consul.Config{Token: reader}},
		"TLS": {map[string]string{
			"CONSUL_HTTP_ADDR": s.consul.AddrTLS, "CONSUL_HTTP_SSL": "true", "CONSUL_CACERT": files.CA,
			"CONSUL_CLIENT_CERT": files.Client.Cert, "CONSUL_CLIENT_KEY": files.Client.Key,
		}, consul.Config{Token: reader}},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range test.environment {
				t.Setenv(variable, value)
			}
			follow(t, connect(test.cfg)).Await("a", "1")
		})
	}
	t.Run("client", func(t *testing.T) { clientOfEnvironment(t, s) })
}

// clientOfEnvironment has address, token and namespace from the environment.
func clientOfEnvironment(t *testing.T, s *server) {
	t.Setenv("CONSUL_HTTP_ADDR", s.consul.Addr)
	t.Setenv("CONSUL_HTTP_TOKEN", testkit.ConsulToken)
	client, err := consul.Dial(consul.Config{})
	defer must(t, client, err).Close()
	must(t, client, client.Put(t.Context(), root+"a", []byte("1")))
	t.Setenv("CONSUL_NAMESPACE", "other")
	namespaced, err := consul.Dial(consul.Config{})
	defer must(t, namespaced, err).Close()
	_, listErr := namespaced.List(t.Context(), root)
	for name, err := range map[string]error{"Put": namespaced.Put(t.Context(), root+"a", nil), "List": listErr} {
		if err == nil || !strings.Contains(err.Error(), "Enterprise") {
			t.Errorf("%s in a namespace: %v", name, err)
		}
	}
}
