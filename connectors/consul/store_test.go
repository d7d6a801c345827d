package consul_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

var (
	_ kvdbsync.Connector = (*consul.Connector)(nil)
	_ kvdbsync.Publisher = (*consul.Connector)(nil)
	_ kvdbsync.Writer    = (*consul.Client)(nil)
)

func TestStore(t *testing.T) {
	t.Parallel()
	c := testkit.StartConsul(t, testkit.ConsulOptions{})
	for name, run := range map[string]func(*testing.T, *server){
		"limits": limits, "shortest session": shortestSession, "unix socket": unixSocket,
		"final slash": finalSlash, "keys that are no clean paths": uncleanKeys,
	} {
		t.Run(name, func(t *testing.T) { run(t, join(t, c)) })
	}
}

// What is too large is told with its key and size.
func limits(t *testing.T, s *server) {
	client := s.dial()
	largest, larger := make([]byte, 512<<10), make([]byte, 512<<10+1)
	must(t, client, client.Put(t.Context(), root+"largest", largest))
	changes := func(n int, value []byte) (out []kvdbsync.Pair) {
		for i := range n {
			out = append(out, kvdbsync.Pair{Key: root + string(rune('0'+i)), Value: value})
		}
		return out
	}
	_, absent := client.PutIfAbsent(t.Context(), root+"larger", larger)
	session, err := s.connector().Session(t.Context(), 0)
	defer must(t, session, err).Close(t.Context())
	for name, test := range map[string]struct {
		err  error
		says []string
	}{
		"put":             {client.Put(t.Context(), root+"larger", larger), []string{root + "larger", "524289 bytes", "kv_max_value_size"}},
		"put if absent":   {absent, []string{root + "larger", "524289 bytes"}},
		"transaction":     {client.Apply(t.Context(), changes(8, make([]byte, 64<<10))), []string{"8 keys", root + "0", "65536 bytes", "txn_max_req_len"}},
		"many changes":    {client.Apply(t.Context(), changes(65, []byte("x"))), []string{"65 changes", "at most 64"}},
		"in a session":    {session.Apply(t.Context(), changes(1, larger)), []string{root + "0", "524289 bytes"}},
		"many in session": {session.Apply(t.Context(), changes(65, []byte("x"))), []string{"65 changes"}},
	} {
		if !errors.Is(test.err, kvdbsync.ErrTooLarge) {
			t.Errorf("%s: %v", name, test.err)
			continue
		}
		for _, part := range test.says {
			if !strings.Contains(test.err.Error(), part) {
				t.Errorf("%s: %v; does not say %s", name, test.err, part)
			}
		}
	}
}

// Consul has a shortest time for sessions, which is taken where less was asked for.
func shortestSession(t *testing.T, s *server) {
	session, err := s.connector().Session(t.Context(), 1)
	must(t, session, err)
	all, _, err := s.client.Session().List(nil)
	if must(t, all, err); len(all) != 1 || all[0].TTL != "10s" || all[0].LockDelay != 0 || all[0].Behavior != "delete" {
		t.Errorf("sessions: %+v", all)
	}
	must(t, session, session.Close(t.Context()))
}

// unixSocket reaches the server by way of a socket that leads there.
func unixSocket(t *testing.T, s *server) {
	path := filepath.Join(t.TempDir(), "consul.sock")
	l, err := net.Listen("unix", path)
	must(t, l, err)
	web := &http.Server{Handler: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.consul.Addr})}
	done := make(chan error)
	go func() { done <- web.Serve(l) }()
	t.Cleanup(func() {
		web.Close()
		<-done
	})
	client, err := consul.Dial(consul.Config{Address: "unix://" + path})
	defer must(t, client, err).Close()
	must(t, path, client.Put(t.Context(), root+"a", []byte("1")))
	pairs, err := client.List(t.Context(), root+"a")
	if must(t, pairs, err); len(pairs) != 1 {
		t.Errorf("listed %v", pairs)
	}
}

// finalSlash has an address as a browser shows it.
func finalSlash(t *testing.T, s *server) {
	client, err := consul.Dial(consul.Config{Address: "http://" + s.consul.Addr + "/"})
	defer must(t, client, err).Close()
	must(t, client, client.Put(t.Context(), root+"a", []byte("1")))
	if value, err := client.Get(t.Context(), root+"a"); err != nil || string(value) != "1" {
		t.Errorf("got %q and %v", value, err)
	}
}

// uncleanKeys are keys that Consul would take for others if they were in a URL.
func uncleanKeys(t *testing.T, s *server) {
	client := s.dial()
	const prefix = "/vnf-agent/unclean/"
	for _, name := range []string{"a//b", "a/./b", "a/../b", "..", "a//"} {
		key := prefix + name
		must(t, key, client.Put(t.Context(), key, []byte("1")))
		if value, err := client.Get(t.Context(), key); err != nil || string(value) != "1" {
			t.Errorf("%s: got %q and %v", key, value, err)
		}
		again, err := client.PutIfAbsent(t.Context(), key, []byte("2"))
		must(t, key, err)
		changed, err := client.PutIfSame(t.Context(), key, []byte("1"), []byte("3"))
		must(t, key, err)
		late, err := client.PutIfSame(t.Context(), key, []byte("1"), []byte("4"))
		if must(t, key, err); again || !changed || late {
			t.Errorf("%s: put if absent: %t; if same: %t, then %t", key, again, changed, late)
		}
		all, err := client.List(t.Context(), prefix)
		if must(t, all, err); len(all) != 1 || all[0].Key != key || string(all[0].Value) != "3" {
			t.Errorf("%s: the store has %q", key, all)
		}
		must(t, key, client.Apply(t.Context(), []kvdbsync.Pair{{Key: key}}))
		if _, err := client.Get(t.Context(), key); !errors.Is(err, kvdbsync.ErrNotFound) {
			t.Errorf("%s, deleted: %v", key, err)
		}
		if stored, err := client.PutIfAbsent(t.Context(), key, nil); !stored || err != nil {
			t.Errorf("%s: put if absent: %t and %v", key, stored, err)
		}
		must(t, key, client.Apply(t.Context(), []kvdbsync.Pair{{Key: key}}))
	}
	if all, err := client.List(t.Context(), prefix+"a//"); err == nil {
		t.Errorf("a prefix that consul would change gave %q", all)
	}
}

func TestStoreThatCannotBeReached(t *testing.T) {
	t.Parallel()
	client, err := consul.Dial(consul.Config{Address: "127.0.0.1:1"})
	defer must(t, client, err).Close()
	key := root + "a"
	_, getErr := client.Get(t.Context(), key)
	_, listErr := client.List(t.Context(), root)
	_, deleteErr := client.Delete(t.Context(), key)
	_, sessionErr := connect(consul.Config{Address: "127.0.0.1:1"}).Session(t.Context(), 0)
	for name, err := range map[string]error{
		"Get " + key: getErr, "List " + root: listErr, "Put " + key: client.Put(t.Context(), key, nil), "Delete " + key: deleteErr, "Session session": sessionErr,
	} {
		_, names, _ := strings.Cut(name, " ")
		if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), names) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStoreThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	cfg, _ := fake(t)
	cfg.OperationTimeout = 20_000_000
	client, err := consul.Dial(cfg)
	defer must(t, client, err).Close()
	_, getErr := client.Get(t.Context(), root+"a")
	_, listErr := client.List(t.Context(), root)
	for name, err := range map[string]error{"Get": getErr, "List": listErr, "Put": client.Put(t.Context(), root+"a", nil)} {
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 20ms") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
