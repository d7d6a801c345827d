package redis_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
)

// A server may want a certificate and a user, both of them.
func TestCertificateAndUser(t *testing.T) {
	t.Parallel()
	certs := testkit.MakeCertificates(t)
	r := testkit.StartRedis(t, testkit.RedisOptions{TLS: certs})
	r.RedisCLI("ACL", "SETUSER", "agent", "on", ">secret", "~"+root+"*", "resetchannels", "+@all")
	r.RedisCLI("ACL", "SETUSER", "default", "off")
	good := redis.Config{
		Endpoint: r.Addr, Username: "agent", Password: "secret",
		TLS: redis.TLS{Enabled: true, CAFile: certs.CA, CertFile: certs.Client.Cert, KeyFile: certs.Client.Key},
	}
	putAndSee(t, good)

	for what, test := range map[string]struct {
		change func(*redis.Config)
		want   string
	}{
		"another password": {func(c *redis.Config) { c.Password = "guess" }, "WRONGPASS"},
		"no user":          {func(c *redis.Config) { c.Username, c.Password = "", "" }, "NOAUTH"},
		"no certificate":   {func(c *redis.Config) { c.TLS.CertFile, c.TLS.KeyFile = "", "" }, ""}, // whose absence the server may or may not get to tell
	} {
		cfg := good
		test.change(&cfg)
		for b, err := range redis.New(cfg, discard()).Watch(t.Context(), root) {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %+v, %v; want %s", what, b, err, test.want)
			}
		}
	}
}
