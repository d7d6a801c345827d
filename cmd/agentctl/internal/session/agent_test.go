package session

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// socketOf runs the socket of an agent with the named stores, until the test ends.
func socketOf(t *testing.T, stores ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl") //nolint:usetesting // a path of t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ready, ended := make(chan struct{}), make(chan error, 1)
	s := kvdb.Server{Socket: filepath.Join(dir, "s"), Stores: map[string]kvdbsync.Store{}, Beside: http.NotFoundHandler(), Ready: ready}
	for _, name := range stores {
		s.Stores[name] = nil // only the names are asked for
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	return s.Socket
}

// loaded returns the settings of a command line.
func loaded(t *testing.T, line ...string) *Session {
	t.Helper()
	s := &Session{Env: func(string) (string, bool) { return "", false }}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.Flags(f)
	if err := f.Parse(line); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(f); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAgentOfTheLabel(t *testing.T) {
	socket := socketOf(t)
	nobody := filepath.Join(filepath.Dir(socket), "none")
	for _, test := range []struct {
		name, socket string
		line         []string
		want         string
	}{
		{"an agent listens there", socket, nil, socket},
		{"nobody listens there", nobody, nil, "127.0.0.1:9191 or " + nobody},
		{"a port is given", socket, []string{"--http-port", "9192"}, "127.0.0.1:9192"},
		{"a host is given", socket, []string{"-H", "10.0.0.1"}, "10.0.0.1:9191"},
		{"a password is given, which the socket does not need", socket, []string{"--http-basic-auth", "a:b"}, "127.0.0.1:9191"},
	} {
		s := loaded(t, test.line...)
		s.Socket = test.socket // that of the label
		at, err := s.agent(t.Context())
		if err != nil || at.name != test.want {
			t.Errorf("%s: %s, %v; expected %s", test.name, at.name, err, test.want)
		}
	}
}

func TestOnlyStore(t *testing.T) {
	for _, test := range []struct {
		stores        []string
		want, failure string
	}{
		{stores: []string{"redis"}, want: "redis"},
		{stores: []string{"bolt", "filedb"}, want: "bolt"},
		{stores: []string{"consul", "redis"}, failure: "the agent at SOCKET has several stores: expected --store with one of consul, redis"},
		{failure: "no such store: the agent at SOCKET has none"},
	} {
		s := loaded(t, "--socket", socketOf(t, test.stores...))
		got, err := s.onlyStore(t.Context())
		var failure string
		if err != nil {
			failure = strings.ReplaceAll(err.Error(), s.Socket, "SOCKET")
		}
		if got != test.want || failure != test.failure {
			t.Errorf("%v: %q, %q; expected %q, %q", test.stores, got, failure, test.want, test.failure)
		}
	}
}

// Without a store of the agent, an older command line means the etcd on this host. A socket that is named
// means its agent.
func TestStoreThatNobodyNames(t *testing.T) {
	for _, test := range []struct {
		what    string
		stores  []string
		named   bool // the socket is
		want    string
		ofAgent bool
		failure string
	}{
		{"the agent has one", []string{"redis"}, false, "redis", true, ""},
		{"the agent has none", nil, false, "etcd", false, ""},
		{"the named agent has none", nil, true, "", true, "no such store: the agent at SOCKET has none"},
	} {
		socket := socketOf(t, test.stores...)
		s := loaded(t)
		if test.named {
			s = loaded(t, "--socket", socket)
		}
		var said strings.Builder
		s.Socket, s.Err, s.ofAgent = socket, &said, true
		var failure string
		if err := s.chooseStore(t.Context()); err != nil {
			failure = strings.ReplaceAll(err.Error(), socket, "SOCKET")
		}
		if s.Store != test.want || s.ofAgent != test.ofAgent || failure != test.failure {
			t.Errorf("%s: %q, of the agent: %v, %q; expected %+v", test.what, s.Store, s.ofAgent, failure, test)
		}
		if told := strings.Contains(said.String(), "this is etcd at 127.0.0.1:2379"); told != (test.want == "etcd") {
			t.Errorf("%s: said %q", test.what, said.String())
		}
	}
}
