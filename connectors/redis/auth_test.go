package redis_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// startWithUsers starts a server where "agent" with "secret" may do what the README
// says below root, and the default user needs the password "admin".
func startWithUsers(t *testing.T) *server {
	t.Helper()
	r := testkit.StartRedis(t, testkit.RedisOptions{Args: []string{"--requirepass", "admin"}})
	client := goredis.NewClient(&goredis.Options{Addr: r.Addr, Password: "admin"})
	t.Cleanup(func() { client.Close() })
	s := &server{t: t, redis: r, line: testkit.StartProxy(t, r.Addr), client: client}
	s.permit("agent")
	return s
}

// permit makes a user who can do just what the README says an agent must.
func (s *server) permit(user string) {
	s.t.Helper()
	s.do("ACL", "SETUSER", user, "on", ">secret", "~"+root+"*", "resetchannels",
		"+ping", "+hello", "+client|tracking", "+scan", "+mget", "+get")
}

func (s *server) configFor(user, password string) redis.Config {
	return redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.line.Addr, Username: user, Password: password}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	s.put(root+"a", "1")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	withFile := s.configFor("agent", "")
	withFile.PasswordFile = file

	t.Run("user", func(t *testing.T) { follow(t, redis.New(s.configFor("agent", "secret"), discard())).Await("a", "1") })
	t.Run("password alone", func(t *testing.T) { follow(t, redis.New(s.configFor("", "admin"), discard())).Await("a", "1") })
	t.Run("file", func(t *testing.T) { follow(t, redis.New(withFile, discard())).Await("a", "1") })
	refused := map[string]struct {
		cfg    redis.Config
		prefix string
		want   string
	}{
		"wrong password": {s.configFor("agent", "guess"), root, "WRONGPASS"},
		"no password":    {s.configFor("", ""), root, "NOAUTH"},
		"other label":    {s.configFor("agent", "secret"), "/vnf-agent/vpp2/", "NOPERM"},
	}
	s.put("/vnf-agent/vpp2/a", "1")
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			for b, err := range redis.New(test.cfg, discard()).Watch(s.ctx(), test.prefix) {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %+v, %v; want %s", b, err, test.want)
				}
			}
		})
	}
}

// A password that is changed, in the server and in the file, goes on being right.
func TestPasswordThatChanges(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	s.do("ACL", "SETUSER", "agent", "+set")
	cfg := s.configFor("agent", "")
	cfg.PasswordFile = filepath.Join(t.TempDir(), "password")
	client := (*redis.Client)(nil)
	m := (*conformance.Mirror)(nil)
	for _, password := range []string{"secret", "other"} {
		if err := os.WriteFile(cfg.PasswordFile, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
		s.do("ACL", "SETUSER", "agent", "resetpass", ">"+password)
		if client == nil {
			client, m = dial(t, cfg), follow(t, redis.New(cfg, discard()))
		} else {
			s.do("CLIENT", "KILL", "USER", "agent")
		}
		// Until the line has passed on that the connection ended, a write fails.
		retry(t, func() error { return client.Put(t.Context(), root+"a", []byte(password)) })
		m.Await("a", password)
	}
}

// A user who is deleted sees no more, keeps what was, and who comes back follows.
func TestPermissionThatComesAndGoes(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	s.put(root+"a", "1")
	m := follow(t, redis.New(s.configFor("late", "secret"), discard()))
	if err := m.AwaitLost(conformance.Any); !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("lost for %v", err)
	}
	s.permit("late")
	m.Await("a", "1")
	s.do("ACL", "DELUSER", "late")
	m.AwaitLost(conformance.Any)
	s.put(root+"a", "2")
	s.permit("late")
	m.Await("a", "2")
	if m.Gone != 0 {
		t.Errorf("%d deletions seen, but there were none", m.Gone)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certs := testkit.MakeCertificates(t)
	security := redis.TLS{Enabled: true, CAFile: certs.CA, CertFile: certs.Client.Cert, KeyFile: certs.Client.Key}
	secure := testkit.RedisOptions{TLS: certs}

	t.Run("server", func(t *testing.T) { testTLSOfServer(t, testkit.StartRedis(t, secure), security) })
	t.Run("sentinels", func(t *testing.T) {
		t.Parallel()
		cfg := sentinelConfig(testkit.StartRedisGroup(t, secure))
		cfg.TLS = security
		putAndSee(t, cfg)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		putAndSee(t, redis.Config{ReadTimeout: testkit.Patience, Endpoints: []string{testkit.StartRedisCluster(t, 3, secure)[0].Addr}, TLS: security})
	})
}

// An authority, and all that it has certified, is exchanged by another meanwhile.
func TestCertificatesThatAreExchanged(t *testing.T) {
	t.Parallel()
	certs, newer := testkit.MakeCertificates(t), testkit.MakeCertificates(t)
	r := testkit.StartRedis(t, testkit.RedisOptions{TLS: certs})
	cfg := redis.Config{ReadTimeout: testkit.Patience, Endpoint: r.Addr, TLS: redis.TLS{Enabled: true, CAFile: certs.CA, CertFile: certs.Client.Cert, KeyFile: certs.Client.Key}}
	m, client := follow(t, redis.New(cfg, discard())), dial(t, cfg)
	put := func(value string) {
		t.Helper()
		if err := client.Put(t.Context(), root+"a", []byte(value)); err != nil {
			t.Fatal(err)
		}
		m.Await("a", value)
	}
	put("1")
	r.Stop()
	for from, to := range map[string]string{
		newer.CA: certs.CA, newer.Server.Cert: certs.Server.Cert, newer.Server.Key: certs.Server.Key,
		newer.Client.Cert: certs.Client.Cert, newer.Client.Key: certs.Client.Key,
	} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	r.Start()
	put("2")
}

func testTLSOfServer(t *testing.T, r *testkit.Redis, security redis.TLS) {
	good := redis.Config{ReadTimeout: testkit.Patience, Endpoint: r.Addr, TLS: security}
	putAndSee(t, good)
	unchecked := good
	unchecked.TLS.CAFile, unchecked.TLS.SkipVerify = "", true
	putAndSee(t, unchecked)
	refused := map[string]struct {
		change func(*redis.Config)
		want   string
	}{
		"unknown authority": {func(c *redis.Config) { c.TLS.CAFile = "" }, "certificate signed by unknown authority"},
		"no certificate":    {func(c *redis.Config) { c.TLS.CertFile, c.TLS.KeyFile = "", "" }, ""}, // whose absence the server may or may not get to tell
		"plain text":        {func(c *redis.Config) { c.TLS = redis.TLS{} }, ""},
	}
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			cfg := good
			test.change(&cfg)
			for b, err := range redis.New(cfg, discard()).Watch(t.Context(), root) {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %+v, %v; want %s", b, err, test.want)
				}
			}
		})
	}
}

// putAndSee puts with a Client what a watch with the same configuration sees.
func putAndSee(t *testing.T, cfg redis.Config) {
	t.Helper()
	m := follow(t, redis.New(cfg, discard()))
	m.Await()
	client := dial(t, cfg)
	if err := client.Put(t.Context(), root+"a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	m.Await("a", "1")
	if _, err := client.Delete(t.Context(), root+"a"); err != nil {
		t.Fatal(err)
	}
	m.Await()
}
