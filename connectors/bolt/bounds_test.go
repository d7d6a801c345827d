package bolt_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/kvdbsync"
)

// Values that another program has written are read up to the bounds; a larger one has an
// error instead, and nothing larger is written.
func TestValueThatIsTooLarge(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.db")
	file, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = file.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("root"))
		return errors.Join(err, b.Put([]byte("/a"), []byte("1")), b.Put([]byte("/b"), make([]byte, 101)))
	})
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	open := func(listing int64) *bolt.DB {
		db, err := bolt.New(bolt.Config{Path: path, Bounds: kvdbsync.Bounds{Value: 100, Page: 200, Listing: listing}})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open(1000)
	for b, err := range db.Watch(t.Context(), "/") {
		if err != nil || len(b.Events) != 2 || string(b.Events[0].Value) != "1" || !errors.Is(b.Events[1].Err, kvdbsync.ErrTooMuch) || b.Events[1].Value != nil {
			t.Errorf("%+v, %v", b, err)
		}
		break
	}
	if _, err := db.Get(t.Context(), "/b"); !errors.Is(err, kvdbsync.ErrTooMuch) || !strings.Contains(err.Error(), "/b: too large: the value has 101 bytes; max-value-size allows 100") {
		t.Errorf("Get: %v", err)
	}
	if _, err := db.List(t.Context(), "/"); !errors.Is(err, kvdbsync.ErrTooMuch) {
		t.Errorf("List: %v", err)
	}
	if err := db.Put(t.Context(), "/c", make([]byte, 101)); !errors.Is(err, kvdbsync.ErrTooLarge) {
		t.Errorf("Put: %v", err)
	}
	for i := range 5 {
		if err := db.Put(t.Context(), "/d"+strings.Repeat("d", i), make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(200)
	defer db.Close()
	for _, err := range db.Watch(t.Context(), "/") {
		if !errors.Is(err, kvdbsync.ErrTooMuch) || !strings.Contains(err.Error(), "max-listing-size") {
			t.Errorf("a file beyond the bounds: %v", err)
		}
	}
}
