package bolt_test

import (
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/connectors/bolt"
)

// open returns a DB on a fresh path, closed when the test ends.
func open(t testing.TB, cfg bolt.Config) (*bolt.DB, string) {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "keys.db")
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
	raw, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 10 * time.Second})
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
