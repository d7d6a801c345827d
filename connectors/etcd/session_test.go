package etcd_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

func expectLost(t *testing.T, session kvdbsync.Session) {
	t.Helper()
	select {
	case <-session.Lost():
	case <-time.After(testkit.Patience):
		t.Error("the session does not know that it is lost")
	}
}

// A server that comes back with its data has the lease still.
func TestSessionSurvivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	s := start(t)
	session, err := s.connector().Session(s.ctx(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	key := root + "status"
	write := func(value string) {
		t.Helper()
		for {
			err := session.Apply(s.ctx(), []kvdbsync.Pair{{Key: key, Value: []byte(value)}})
			if err == nil {
				return
			}
			if !isUnavailable(err) {
				t.Fatal(err)
			}
		}
	}
	write("1")
	s.etcd.Kill()
	s.etcd.Start()
	if got := s.get(key); string(got) != "1" {
		t.Errorf("after the restart the key has %q", got)
	}
	write("2")
	if err := session.Close(s.ctx()); err != nil || s.get(key) != nil {
		t.Errorf("closed with %v, and the key has %q", err, s.get(key))
	}
}

// A server that lost its data has lost the lease, and a session that writes hears of it.
func TestSessionIsLostWithTheData(t *testing.T) {
	t.Parallel()
	s := start(t)
	session, err := s.connector().Session(s.ctx(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(value string) error {
		return session.Apply(s.ctx(), []kvdbsync.Pair{{Key: root + "status", Value: []byte(value)}})
	}
	if err := apply("1"); err != nil {
		t.Fatal(err)
	}
	s.etcd.Kill()
	s.etcd.Wipe()
	s.etcd.Start()
	for name, hears := range map[string]func() error{
		"renewal": func() error { return etcd.Renew(s.ctx(), session) },
		"write":   func() error { return apply("2") },
	} {
		err := hears()
		for late := s.ctx(); err != nil && !errors.Is(err, kvdbsync.ErrSessionOver) && late.Err() == nil; {
			err = hears() // the server was just started
		}
		if !errors.Is(err, kvdbsync.ErrSessionOver) {
			t.Errorf("a %s of a lost session: %v", name, err)
		}
	}
	expectLost(t, session)
	if err := session.Close(s.ctx()); err != nil {
		t.Errorf("closing what is lost: %v", err)
	}
}

// A server that hangs renews nothing, and says nothing.
func TestSessionOfAServerThatHangs(t *testing.T) {
	t.Parallel()
	s := start(t)
	session, err := s.connector().Session(s.ctx(), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	s.etcd.Pause()
	expectLost(t, session)
	s.etcd.Continue()
	if err := session.Close(s.ctx()); err != nil {
		t.Error(err)
	}
}

func TestSessionThatCannotBegin(t *testing.T) {
	t.Parallel()
	if _, err := etcd.New(etcd.Config{Endpoints: []string{"127.0.0.1:1"}}, nil).Session(t.Context(), 0); err == nil ||
		!strings.HasPrefix(err.Error(), "beginning a session in etcd: ") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}
