package publish_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator/publish"
)

// Each kind of store, with what it takes to have one.
func kinds() map[string]func(t *testing.T) kvdbsync.Publisher {
	log := slog.New(slog.DiscardHandler)
	return map[string]func(t *testing.T) kvdbsync.Publisher{
		"etcd": func(t *testing.T) kvdbsync.Publisher {
			return etcd.New(etcd.Config{Endpoints: []string{testkit.StartEtcd(t, testkit.EtcdOptions{}).Addr}}, log)
		},
		"redis": func(t *testing.T) kvdbsync.Publisher {
			redis.LogTo(log)
			return redis.New(redis.Config{Endpoint: testkit.StartRedis(t, testkit.RedisOptions{}).Addr}, log)
		},
		"consul": func(t *testing.T) kvdbsync.Publisher {
			return consul.New(consul.Config{Address: testkit.StartConsul(t, testkit.ConsulOptions{}).Addr}, log)
		},
		"bolt": func(t *testing.T) kvdbsync.Publisher {
			db, err := bolt.New(bolt.Config{Path: filepath.Join(t.TempDir(), "keys.db")})
			t.Cleanup(func() { db.Close() })
			return must(t, db, err)
		},
		"filedb":           func(t *testing.T) kvdbsync.Publisher { return files(t, "status.json") },
		"filedb, a folder": func(t *testing.T) kvdbsync.Publisher { return files(t, "status/") },
	}
}

func files(t *testing.T, status string) kvdbsync.Publisher {
	dir := t.TempDir()
	db, err := filedb.New(filedb.Config{Paths: []string{dir + "/network"}, StatusPath: dir + "/" + status}, root, slog.New(slog.DiscardHandler))
	return must(t, db, err)
}

func must[S any](t *testing.T, s S, err error) S {
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What an earlier run has left is replaced or goes, what is known stands there and
// follows, and all of it goes at the end.
func TestRealStores(t *testing.T) {
	for name, open := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			look := begin(t, store)
			if err := look.Apply(t.Context(), []kvdbsync.Pair{
				{Key: of + "a", Value: []byte(`{"key":"config/text/a","state":"PENDING"}`)},
				{Key: of + "unknown", Value: []byte(`{"key":"config/text/unknown","state":"CONFIGURED"}`)},
			}); err != nil {
				t.Fatal(err)
			}

			sched, _ := newScheduler(t)
			stop := running(t, publish.New(sched, publish.Options{
				Name: name, Store: store, Root: root, Period: 100 * time.Millisecond, LeftoverGrace: 200 * time.Millisecond,
			}).Run)
			commit(t, sched, "a=ok", "b=waits", "c=invalid")
			until(t, look, `a=CONFIGURED b=PENDING[other-exists] c=INVALID(invalid value: value: invalid: expected anything else)`)
			commit(t, sched, "other=ok", "c-", "a=half")
			until(t, look, `a=CONFIGURED b=CONFIGURED other=CONFIGURED`)
			stop()
			until(t, look, "")
		})
	}
}

// A store that has no place for status says so once.
func TestAStoreWithoutAPlaceForStatus(t *testing.T) {
	var said journal
	db, err := filedb.New(filedb.Config{Paths: []string{t.TempDir()}}, root, said.log())
	sched, _ := newScheduler(t)
	p := publish.New(sched, publish.Options{Name: "filedb", Store: must(t, db, err), Root: root, Log: said.log()})
	if err := p.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if got := said.messages(); got != "WARN cannot publish status into this store: it is read-only" || !strings.Contains(said.String(), "status-path") {
		t.Errorf("logged %s", &said.Buffer)
	}
}

func begin(t *testing.T, store kvdbsync.Publisher) kvdbsync.Session {
	t.Helper()
	s, err := store.Session(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// until waits for what another goroutine writes; stores tell nobody who only lists.
func until(t *testing.T, s kvdbsync.Session, want string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(testkit.Patience)
	for {
		got := shown(s.List(t.Context(), of))
		if got == want {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("the store has %q\nwant %q", got, want)
		}
	}
}
