package bolt_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// folder is a fresh one, in memory where there is such a place: thousands of
// transactions need not wait for a disk.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "keyplane-bolt-") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// open returns a DB on a fresh path, closed when the test ends.
func open(t testing.TB, cfg bolt.Config) (*bolt.DB, string) {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(folder(t), "keys.db")
	}
	db, err := bolt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, cfg.Path
}

// openRaw opens the file as another program would.
func openRaw(t testing.TB, path string) *bbolt.DB {
	t.Helper()
	raw, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: testkit.Patience})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// change writes with the library's own means; a nil value deletes.
func change(t testing.TB, raw *bbolt.DB, key string, value []byte) {
	t.Helper()
	err := raw.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("root"))
		if err != nil {
			return err
		}
		if value == nil {
			return b.Delete([]byte(key))
		}
		return b.Put([]byte(key), value)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A mirror follows a DB through a Source.
type mirror struct {
	*kvdbsync.Source
	t    *testing.T
	has  map[string]string
	late <-chan time.Time
}

func follow(t *testing.T, db *bolt.DB) *mirror {
	t.Helper()
	m := &mirror{
		t: t, has: map[string]string{}, late: time.After(testkit.Patience),
		Source: kvdbsync.NewSource(kvdbsync.Options{Name: "bolt", Connector: db, MaxBackoff: 50 * time.Millisecond}),
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return m
}

// await takes changes until the mirror is synced and holds exactly want, pairs of
// key and value.
func (m *mirror) await(pairs ...string) {
	m.t.Helper()
	want := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		want[pairs[i]] = pairs[i+1]
	}
	for !maps.Equal(m.has, want) || m.Health().State != kvdbsync.Synced {
		select {
		case <-m.Ready():
		case <-m.late:
			m.t.Fatalf("the mirror has %v, want %v; health %+v", m.has, want, m.Health())
		}
		c, _ := m.Take()
		for _, e := range c.Events {
			if m.has[e.Key] = string(e.Value); e.Value == nil {
				delete(m.has, e.Key)
			}
		}
	}
}

// awaitLost waits until the source is out of sync for that reason.
func (m *mirror) awaitLost(want error) {
	m.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !errors.Is(m.Health().Err, want) {
		select {
		case <-tick.C:
		case <-m.late:
			m.t.Fatalf("want %v; health %+v", want, m.Health())
		}
	}
}
