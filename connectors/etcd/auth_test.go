package etcd_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// startWithUsers starts a server where "agent" with "secret" may read and write
// below root, and nobody else anything but the administrator, whose client it has.
func startWithUsers(t *testing.T, args ...string) *server {
	t.Helper()
	s := start(t, args...)
	allowAgent(t, s.client)
	s.client = bareClient(t, clientv3.Config{Endpoints: []string{s.etcd.Endpoint}, Username: "root", Password: "admin"})
	return s
}

// allowAgent makes the users of a server, and has it ask for them.
func allowAgent(t *testing.T, c *clientv3.Client) {
	t.Helper()
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.UserAdd(ctx, "root", "admin"))
	must(c.UserGrantRole(ctx, "root", "root"))
	must(c.RoleAdd(ctx, "vpp1"))
	must(c.RoleGrantPermission(ctx, "vpp1", root, clientv3.GetPrefixRangeEnd(root), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(c.UserAdd(ctx, "agent", "secret"))
	must(c.UserGrantRole(ctx, "agent", "vpp1"))
	must(c.AuthEnable(ctx))
}

func (s *server) configFor(user, password string) etcd.Config {
	return etcd.Config{Endpoints: []string{s.line.Addr}, Username: user, Password: password, DialTimeout: testkit.Patience, OperationTimeout: testkit.Patience}
}

func TestAuthentication(t *testing.T) {
	s := startWithUsers(t)
	s.put(root+"a", "1")
	log := slog.New(slog.DiscardHandler)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	withFile := s.configFor("agent", "")
	withFile.PasswordFile = file

	t.Run("password", func(t *testing.T) { follow(t, etcd.New(s.configFor("agent", "secret"), log)).Await("a", "1") })
	t.Run("file", func(t *testing.T) { follow(t, etcd.New(withFile, log)).Await("a", "1") })
	t.Run("environment", func(t *testing.T) {
		t.Setenv("ETCD_USERNAME", "agent")
		t.Setenv("ETCD_PASSWORD", "secret")
		follow(t, etcd.New(s.configFor("", ""), log)).Await("a", "1")
	})
	refused := map[string]struct {
		cfg    etcd.Config
		prefix string
		want   string
	}{
		"wrong password": {s.configFor("agent", "guess"), root, "authentication failed, invalid user ID or password"},
		"no password":    {s.configFor("", ""), root, "user name is empty"},
		"other label":    {s.configFor("agent", "secret"), "/vnf-agent/vpp2/", "permission denied"},
	}
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			for b, err := range etcd.New(test.cfg, log).Watch(s.ctx(), test.prefix) {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %+v, %v; want %s", b, err, test.want)
				}
			}
		})
	}
}

// A restarted server knows no token that it gave out before.
func TestTokenThatRanOut(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	s.put(root+"a", "1")
	m := follow(t, etcd.New(s.configFor("agent", "secret"), slog.New(slog.DiscardHandler)))
	m.Await("a", "1")
	client, err := etcd.Dial(s.ctx(), s.configFor("agent", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, value := range []string{"2", "3"} {
		s.etcd.Kill()
		s.etcd.Start()
		awaitPut(s.ctx(), t, client, root+"a", value)
		m.Await("a", value)
	}
}

// A token that lives for a second only is replaced by whoever has one. A busy machine may need
// several tokens for one request.
func TestTokenThatExpires(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("signs tokens"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startWithUsers(t, "--auth-token=jwt,priv-key="+secret+",sign-method=HS256,ttl=1s")
	c := etcd.New(s.configFor("agent", "secret"), slog.New(slog.DiscardHandler))
	m := follow(t, c)
	client := s.dial(s.configFor("agent", "secret"))
	session, err := c.Session(s.ctx(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for i, begun := 0, time.Now(); time.Since(begun) < 4*time.Second; i++ {
		value := strconv.Itoa(i)
		if err := client.Put(s.ctx(), root+"a", []byte(value)); err != nil {
			t.Fatal(err)
		}
		if err := session.Apply(s.ctx(), []kvdbsync.Pair{{Key: root + "status", Value: []byte(value)}}); err != nil {
			t.Fatal(err)
		}
		m.Await("a", value, "status", value)
		<-tick.C
	}
	renewing, cancel := context.WithTimeout(s.ctx(), testkit.Patience)
	defer cancel()
	for err := etcd.Renew(renewing, session); err != nil; err = etcd.Renew(renewing, session) {
		if renewing.Err() != nil { // a session repeats its renewals
			t.Fatal(err)
		}
	}
	if err := session.Close(s.ctx()); err != nil {
		t.Error(err)
	}
	s.line.Set(testkit.Reset)
	s.put(root+"a", "last")
	s.line.Set(testkit.Pass)
	m.Await("a", "last")
}

// logins returns how many times a client has sent its password.
func (s *server) logins() (n int) {
	s.t.Helper()
	answer, err := http.Get(s.etcd.Endpoint + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if labels, count, _ := strings.Cut(strings.TrimSpace(line), "} "); strings.HasPrefix(labels, "grpc_server_handled_total{") && strings.Contains(labels, `"Authenticate"`) {
			some, err := strconv.Atoi(count)
			if err != nil {
				s.t.Fatal(err)
			}
			n += some
		}
	}
	return n
}

// A server takes a tenth of a second to check a password, and all its members agree on each
// login. So a session must not log in each time that it is renewed.
func TestASessionLogsInRarely(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	session, err := etcd.New(s.configFor("agent", "secret"), slog.New(slog.DiscardHandler)).Session(s.ctx(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	before := s.logins()
	for range 10 {
		if err := etcd.Renew(s.ctx(), session); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.logins() - before; before == 0 || n > 2 {
		t.Errorf("the session logged in %d times for ten renewals; at most 2 are allowed (%d before)", n, before)
	}
	if err := session.Close(s.ctx()); err != nil {
		t.Error(err)
	}
}

// What was known stays while the permission is missing, and changes made meanwhile come with it.
func TestPermissionRevokedAndGranted(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	s.put(root+"a", "1")
	s.put(root+"b", "1")
	m := follow(t, etcd.New(s.configFor("agent", "secret"), slog.New(slog.DiscardHandler)))
	m.Await("a", "1", "b", "1")
	if _, err := s.client.UserRevokeRole(s.ctx(), "agent", "vpp1"); err != nil {
		t.Fatal(err)
	}
	s.line.Set(testkit.Reset) // etcd asks for the permission when a watch begins
	s.line.Set(testkit.Pass)
	m.AwaitLost(saying("permission denied"))
	s.put(root+"a", "2")
	s.delete(root + "b")
	if c, ok := m.Source.Take(); ok {
		t.Errorf("without permission came %+v", c)
	}
	if _, err := s.client.UserGrantRole(s.ctx(), "agent", "vpp1"); err != nil {
		t.Fatal(err)
	}
	m.Await("a", "2")
}

// awaitPut puts as soon as the client has found that the server is back.
func awaitPut(ctx context.Context, t *testing.T, client *etcd.Client, key, value string) {
	t.Helper()
	for {
		err := client.Put(ctx, key, []byte(value))
		switch {
		case err == nil:
			return
		case !isUnavailable(err) || ctx.Err() != nil:
			t.Fatal(err)
		}
	}
}

// A user who is deleted sees no more, and one who comes back does.
func TestPermissionThatComesLater(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	s.put(root+"a", "1")
	m := follow(t, etcd.New(s.configFor("late", "secret"), slog.New(slog.DiscardHandler)))
	if err := m.AwaitLost(conformance.Any); !strings.Contains(err.Error(), "authentication failed") {
		t.Errorf("lost for %v", err)
	}
	if _, err := s.client.UserAdd(s.ctx(), "late", "secret"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.UserGrantRole(s.ctx(), "late", "vpp1"); err != nil {
		t.Fatal(err)
	}
	m.Await("a", "1")
}

// An authority, and all that it signed, is exchanged by another while the agent runs.
func TestCertificatesThatAreExchanged(t *testing.T) {
	t.Parallel()
	files, newer := testkit.MakeCertificates(t), testkit.MakeCertificates(t)
	e := testkit.StartEtcd(t, testkit.EtcdOptions{TLS: true, Args: []string{
		"--cert-file=" + files.Server.Cert, "--key-file=" + files.Server.Key,
		"--trusted-ca-file=" + files.CA, "--client-cert-auth",
	}})
	cfg := etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{e.Addr}, CAFile: files.CA, CertFile: files.Client.Cert, KeyFile: files.Client.Key}
	put := func(value string) {
		t.Helper()
		client, err := etcd.Dial(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := client.Put(t.Context(), root+"a", []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	put("1")
	m := follow(t, etcd.New(cfg, slog.New(slog.DiscardHandler)))
	m.Await("a", "1")
	e.Stop()
	for from, to := range map[string]string{
		newer.CA: files.CA, newer.Server.Cert: files.Server.Cert, newer.Server.Key: files.Server.Key,
		newer.Client.Cert: files.Client.Cert, newer.Client.Key: files.Client.Key,
	} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	e.Start()
	put("2")
	m.Await("a", "2")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	files := testkit.MakeCertificates(t)
	e := testkit.StartEtcd(t, testkit.EtcdOptions{TLS: true, Args: []string{
		"--cert-file=" + files.Server.Cert, "--key-file=" + files.Server.Key,
		"--trusted-ca-file=" + files.CA, "--client-cert-auth",
	}})
	log := slog.New(slog.DiscardHandler)
	good := etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{e.Addr}, CAFile: files.CA, CertFile: files.Client.Cert, KeyFile: files.Client.Key}
	client, err := etcd.Dial(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Put(t.Context(), root+"a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	follow(t, etcd.New(good, log)).Await("a", "1")

	url := good
	url.Endpoints = []string{"https://" + e.Addr}
	follow(t, etcd.New(url, log)).Await("a", "1")

	unchecked := good
	unchecked.CAFile, unchecked.InsecureSkip = "", true
	follow(t, etcd.New(unchecked, log)).Await("a", "1")

	refused := map[string]struct {
		change func(*etcd.Config)
		want   string
	}{
		"unknown authority": {func(c *etcd.Config) { c.CAFile = "" }, "certificate signed by unknown authority"},
		"no certificate":    {func(c *etcd.Config) { c.CertFile, c.KeyFile = "", "" }, ""}, // whose absence the server may or may not get to tell
		"plain text":        {func(c *etcd.Config) { c.InsecureTransport = true }, "error reading server preface"},
	}
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			cfg := good
			test.change(&cfg)
			for b, err := range etcd.New(cfg, log).Watch(t.Context(), root) {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %+v, %v; want %s", b, err, test.want)
				}
			}
		})
	}
}
