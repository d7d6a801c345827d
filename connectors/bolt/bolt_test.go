package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/kvdbsync"
)

func TestFileOfAnEarlierAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	raw := openRaw(t, path)
	change(t, raw, "/vnf-agent/vpp1/config/a", []byte("{}"))
	err := raw.Update(func(tx *bbolt.Tx) error {
		other, err := tx.CreateBucket([]byte("other"))
		if err != nil {
			return err
		}
		if _, err := tx.Bucket([]byte("root")).CreateBucket([]byte("/vnf-agent/vpp1/nested")); err != nil {
			return err
		}
		return other.Put([]byte("k"), []byte("v"))
	})
	if err = errors.Join(err, raw.Close()); err != nil {
		t.Fatal(err)
	}

	db, _ := open(t, bolt.Config{Path: path})
	pairs, err := db.List(t.Context(), "/vnf-agent/vpp1/")
	if err != nil || len(pairs) != 1 || pairs[0].Key != "/vnf-agent/vpp1/config/a" || string(pairs[0].Value) != "{}" {
		t.Fatalf("%v, %v", pairs, err)
	}
	if err := errors.Join(db.Put(t.Context(), "k", []byte("w")), db.Close()); err != nil {
		t.Fatal(err)
	}
	raw = openRaw(t, path)
	defer raw.Close()
	err = raw.View(func(tx *bbolt.Tx) error {
		if got := tx.Bucket([]byte("root")).Get([]byte("k")); string(got) != "w" {
			t.Errorf("root has %q", got)
		}
		if got := tx.Bucket([]byte("other")).Get([]byte("k")); string(got) != "v" {
			t.Errorf("other has %q", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFileIsMadeAtTheFirstUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "keys.db")
	db, _ := open(t, bolt.Config{Path: path, FileMode: 0o640})
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("made by New: %v", err)
	}
	if _, err := db.Get(t.Context(), "k"); !errors.Is(err, kvdbsync.ErrNotFound) {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestEmptyValueIsNoMissingKey(t *testing.T) {
	db, _ := open(t, bolt.Config{})
	ctx := t.Context()
	for _, value := range [][]byte{nil, {}} {
		if err := db.Put(ctx, "k", value); err != nil {
			t.Fatal(err)
		}
		if got, err := db.Get(ctx, "k"); got == nil || len(got) != 0 || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	}
	for b, err := range db.Watch(ctx, "") {
		if err != nil || len(b.Events) != 1 || b.Events[0].Value == nil {
			t.Errorf("%+v, %v", b, err)
		}
		break
	}
	for _, want := range []bool{true, false} {
		if existed, err := db.Delete(ctx, "k"); existed != want || err != nil {
			t.Errorf("deleted: %v, %v; want %v", existed, err, want)
		}
	}
}

func TestTransactionIsOneBatchWithItsNumber(t *testing.T) {
	db, _ := open(t, bolt.Config{})
	w := watched(t, db)
	first := <-w
	if !first.Synced || len(first.Events) != 0 {
		t.Fatalf("%+v", first)
	}
	pair := func(key, value string) kvdbsync.Pair { return kvdbsync.Pair{Key: key, Value: []byte(value)} }
	err := db.Apply(t.Context(), []kvdbsync.Pair{pair("a", "1"), pair("b", "1"), {Key: "absent"}})
	if err != nil {
		t.Fatal(err)
	}
	b := <-w
	if len(b.Events) != 2 || b.Rev != first.Rev+1 || b.Events[1].Rev != b.Rev || b.Synced {
		t.Errorf("%+v after revision %d", b, first.Rev)
	}

	tooLong := pair(strings.Repeat("k", bbolt.MaxKeySize+1), "1")
	if err := db.Apply(t.Context(), []kvdbsync.Pair{pair("a", "2"), tooLong}); err == nil || len(err.Error()) > 300 {
		t.Errorf("a key that is too long: %.400v", err)
	}
	if err := db.Put(t.Context(), "", nil); err == nil {
		t.Error("an empty key was taken")
	}
	if got, err := db.Get(t.Context(), "a"); string(got) != "1" || err != nil {
		t.Errorf("half a transaction was written: %q, %v", got, err)
	}
	if err := db.Put(t.Context(), "a", []byte("3")); err != nil {
		t.Fatal(err)
	}
	if next := <-w; len(next.Events) != 1 || string(next.Events[0].Value) != "3" || next.Rev <= b.Rev {
		t.Errorf("%+v", next)
	}
}

func TestDuplicatesAreFilteredWhereAsked(t *testing.T) {
	for _, filter := range []bool{false, true} {
		db, _ := open(t, bolt.Config{FilterDuplicates: filter})
		w := watched(t, db)
		<-w
		for _, value := range []string{"1", "1", "2"} {
			if err := db.Put(t.Context(), "k", []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		for !strings.HasSuffix(got, "2") {
			got += string((<-w).Events[0].Value)
		}
		if want := map[bool]string{false: "112", true: "12"}[filter]; got != want {
			t.Errorf("filter %v: %s, want %s", filter, got, want)
		}
	}
}

func TestValuesOutliveTheirTransaction(t *testing.T) {
	db, _ := open(t, bolt.Config{})
	ctx := t.Context()
	value := bytes.Repeat([]byte("x"), 10_000)
	if err := db.Put(ctx, "k", value); err != nil {
		t.Fatal(err)
	}
	got, err := db.Get(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	value[0] = 'z'
	for i := range 50 {
		if err := db.Put(ctx, "k", bytes.Repeat([]byte{byte('a' + i%20)}, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, bytes.Repeat([]byte("x"), 10_000)) {
		t.Errorf("the value became %.10q...", got)
	}
}

func TestAnotherProcessHasTheFile(t *testing.T) {
	db, path := open(t, bolt.Config{LockTimeout: 200 * time.Millisecond})
	raw := openRaw(t, path)
	begun := time.Now()
	_, err := db.Get(t.Context(), "k")
	if took := time.Since(begun); !errors.Is(err, bolt.ErrLocked) || took < 200*time.Millisecond {
		t.Errorf("after %v: %v", took, err)
	}
	if want := path + ": in use by another process (waited 200ms for it to be closed)"; err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for _, err := range db.Watch(t.Context(), "") {
		if !errors.Is(err, bolt.ErrLocked) {
			t.Errorf("watch: %v", err)
		}
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Put(t.Context(), "k", nil); err != nil {
		t.Errorf("after it was closed: %v", err)
	}
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	db, path := open(t, bolt.Config{LockTimeout: time.Hour})
	defer openRaw(t, path).Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for b, err := range db.Watch(ctx, "") {
		t.Errorf("yielded %+v, %v", b, err)
	}
	if _, err := db.Get(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestDamagedFile(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.db")
	raw := openRaw(t, good)
	for i := range 200 {
		change(t, raw, fmt.Sprintf("k%03d", i), bytes.Repeat([]byte("v"), 500))
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	scribbled := bytes.Clone(data)
	for i := 2 * page; i < len(scribbled); i++ {
		scribbled[i] = 0xa5
	}
	for name, content := range map[string][]byte{
		"text":      bytes.Repeat([]byte("not a database\n"), 2000),
		"short":     []byte("x"),
		"a page":    data[:page+1],
		"cut off":   data[:2*page],
		"scribbled": scribbled,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			db, _ := open(t, bolt.Config{Path: path})
			if _, err := db.List(t.Context(), ""); !errors.Is(err, bolt.ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v", err)
			}
			if now, err := os.ReadFile(path); !bytes.Equal(now, content) || err != nil {
				t.Error("the file was written to")
			}
		})
	}
}

// TestPipeInPlaceOfTheFile: nobody may ever write into a pipe, so opening it must not block.
func TestPipeInPlaceOfTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.db")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	db, _ := open(t, bolt.Config{Path: path})
	if _, err := db.List(t.Context(), ""); !errors.Is(err, bolt.ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

func TestCloseEndsWatchesAndUseOpensAgain(t *testing.T) {
	db, _ := open(t, bolt.Config{})
	if err := db.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range db.Watch(t.Context(), "") {
		if last = err; err == nil {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if !errors.Is(last, bolt.ErrClosed) {
		t.Errorf("the watch ended with %v", last)
	}
	if got, err := db.Get(t.Context(), "k"); string(got) != "v" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSlowReaderIsToldThatItIsBehind(t *testing.T) {
	db, _ := open(t, bolt.Config{})
	var last error
	seen := 0
	for b, err := range db.Watch(t.Context(), "a") {
		if last = err; b.Synced {
			for i := range 5000 {
				if err := db.Put(t.Context(), "a", []byte{byte(i)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		seen += len(b.Events)
	}
	if !errors.Is(last, bolt.ErrBehind) || seen != 4096 {
		t.Errorf("after %d events: %v", seen, last)
	}
}

func TestConfig(t *testing.T) {
	for text, want := range map[string]os.FileMode{
		`file-mode: "0600"`: 0o600, `file-mode: 0640`: 0o640, `file-mode: 0o644`: 0o644, `file-mode: 384`: 0o600, `file-mode: "644"`: 0o644,
	} {
		var c bolt.Config
		if err := yaml.Unmarshal([]byte(text), &c); err != nil || os.FileMode(c.FileMode) != want {
			t.Errorf("%s: %o, %v", text, c.FileMode, err)
		}
	}
	for _, text := range []string{"file-mode: 600", `file-mode: "0999"`, "file-mode: rw", "file-mode: [6]", "file-mode: -1", `file-mode: "01777"`} {
		var c bolt.Config
		if err := yaml.Unmarshal([]byte(text), &c); err == nil || !strings.Contains(err.Error(), `expected octal digits in quotes, such as "0600"`) {
			t.Errorf("%s: %o, %v", text, c.FileMode, err)
		}
	}
	for field, cfg := range map[string]bolt.Config{"db-path": {}, "lock-timeout": {Path: "x", LockTimeout: -1}} {
		if _, err := bolt.New(cfg); err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// watched hands on what a watch yields until the test ends.
func watched(t *testing.T, db *bolt.DB) <-chan kvdbsync.Batch {
	ctx, cancel := context.WithCancel(t.Context())
	out, ended := make(chan kvdbsync.Batch), make(chan struct{})
	go func() {
		defer close(ended)
		for b, err := range db.Watch(ctx, "") {
			if err != nil {
				t.Error(err)
			}
			select {
			case out <- b:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return out
}
