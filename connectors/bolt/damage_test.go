package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// fillFile makes a file that is large enough to lose parts of it, and returns its content.
func fillFile(t *testing.T, path, value string) []byte {
	t.Helper()
	raw := openRaw(t, path)
	err := raw.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("root"))
		for i := 0; err == nil && i < 400; i++ {
			err = b.Put(fmt.Appendf(nil, "k%03d", i), bytes.Repeat([]byte(value), 500))
		}
		return err
	})
	if err = errors.Join(err, raw.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// damages are what may happen to a file while it is open.
func damages() map[string]func(t *testing.T, path string) {
	truncate := func(size func(all int64) int64) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, size(info.Size()))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	scribble := func(from int64) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, int(info.Size()-from)), from)
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	page := int64(os.Getpagesize())
	return map[string]func(t *testing.T, path string){
		"truncated to nothing": truncate(func(int64) int64 { return 0 }),
		"truncated to a page":  truncate(func(int64) int64 { return page }),
		"truncated to a half":  truncate(func(all int64) int64 { return all / 2 }),
		"scribbled":            scribble(0),
		"scribbled behind":     scribble(4 * page),
	}
}

// within fails if do takes for ever, as it does where the library's locks are still held.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(testkit.Patience):
		t.Fatalf("%s hangs", what)
	}
}

func TestAFileDamagedWhileOpen(t *testing.T) {
	for name, damage := range damages() {
		for _, watched := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, watched %v", name, watched), func(t *testing.T) {
				db, path := open(t, bolt.Config{})
				fillFile(t, path, "1")
				if _, err := db.Get(t.Context(), "k000"); err != nil {
					t.Fatal(err)
				}
				var m *mirror
				if watched {
					m = follow(t, db)
				}
				damage(t, path)
				for range 2 {
					within(t, "put", func() {
						if err := db.Put(t.Context(), "k", []byte("v")); !errors.Is(err, bolt.ErrDamaged) || strings.Count(err.Error(), path) != 1 {
							t.Errorf("put: %v", err)
						}
					})
					within(t, "list", func() {
						if _, err := db.List(t.Context(), ""); !errors.Is(err, bolt.ErrDamaged) {
							t.Errorf("list: %v", err)
						}
					})
				}
				if watched {
					m.awaitLost(bolt.ErrDamaged)
				}
				makeFile(t, path+".new", "2")
				rename(t, path+".new", path)
				within(t, "get of a good copy", func() { expectValue(t, db, "2") })
				if watched {
					within(t, "the watch", func() { m.await("k", "2") })
				}
				within(t, "close", func() {
					if err := db.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A panic leaves the library's locks held, the lock on the file and its memory.
func TestAPanicLeavesNothingLocked(t *testing.T) {
	db, path := open(t, bolt.Config{LockTimeout: 100 * time.Millisecond})
	good := fillFile(t, path, "1")
	s, err := db.Session(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := db.PanicInside(t.Context()); !errors.Is(err, bolt.ErrDamaged) {
			t.Fatal(err)
		}
		if maps, err := os.ReadFile("/proc/self/maps"); err != nil || strings.Contains(string(maps), path) {
			t.Errorf("the memory of an abandoned file is still mapped (%v)", err)
		}
		openRaw(t, path).Close() // fails while the lock is held
		within(t, "use of a file that is whole", func() {
			if v, err := db.Get(t.Context(), "k000"); err != nil || len(v) != 500 {
				t.Errorf("%d bytes, %v", len(v), err)
			}
		})
	}
	select {
	case <-s.Lost():
	default:
		t.Error("the session does not know that it is lost")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, good) {
		t.Errorf("the file was written to (%v)", err)
	}
}

// Whoever copies a good file over an open one is obeyed, too.
func TestAGoodCopyWrittenInPlace(t *testing.T) {
	db, path := open(t, bolt.Config{})
	good := fillFile(t, path+".good", "2")
	fillFile(t, path, "1")
	m := follow(t, db)
	if err := db.Put(t.Context(), "only here", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	m.awaitLost(bolt.ErrDamaged)
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 400 {
		want = append(want, fmt.Sprintf("k%03d", i), strings.Repeat("2", 500))
	}
	m.await(want...)
}

// A commit can fail after readers see its changes. Then the watches and sessions end, and those that
// follow read what the file has. A commit that failed earlier has changed nothing and ends nothing.
func TestACommitThatFails(t *testing.T) {
	for written, now := range map[bool]string{false: "1", true: "2"} {
		t.Run("written "+strconv.FormatBool(written), func(t *testing.T) {
			db, _ := open(t, bolt.Config{})
			if err := db.Put(t.Context(), "k", []byte("1")); err != nil {
				t.Fatal(err)
			}
			m := follow(t, db)
			m.await("k", "1")
			s, err := db.Session(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			reason := db.FailCommit(written)
			if err := s.Apply(t.Context(), []kvdbsync.Pair{{Key: "k", Value: []byte("2")}}); !errors.Is(err, reason) {
				t.Fatalf("apply: %v", err)
			}
			expectValue(t, db, now)
			m.await("k", now)
			select {
			case <-s.Lost():
				if !written {
					t.Error("the session is lost")
				}
			default:
				if written {
					t.Error("the session does not know that it is lost")
				}
			}
			if h := m.Health(); h.Gaps > 0 != written || errors.Is(h.LastErr, bolt.ErrUncertain) != written {
				t.Errorf("%d gaps, for %v", h.Gaps, h.LastErr)
			}
			if err := db.Put(t.Context(), "k", []byte("3")); err != nil {
				t.Error(err)
			}
			m.await("k", "3")
		})
	}
}

// What the DB itself writes is not taken for the doing of another program.
func TestOwnWritesEndNoWatch(t *testing.T) {
	db, _ := open(t, bolt.Config{})
	m := follow(t, db)
	m.await()
	for i := range 200 {
		if err := db.Put(t.Context(), "k", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	m.await("k", "199")
	if h := m.Health(); h.Gaps > 0 {
		t.Errorf("%d gaps, for %v", h.Gaps, h.LastErr)
	}
}

// A file without a list of free pages makes the library walk through it in a goroutine
// of its own, whose panic would end the process.
func TestADamagedFileWithoutAFreelist(t *testing.T) {
	_, path := open(t, bolt.Config{})
	raw, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		change(t, raw, fmt.Sprintf("k%03d", i), bytes.Repeat([]byte("v"), 500))
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := bytes.Clone(whole)
	for i := 2 * os.Getpagesize(); i < len(broken); i++ {
		broken[i] = 0xa5
	}
	for name, content := range map[string][]byte{"scribbled": broken, "cut": whole[:len(whole)/2], "whole": whole} {
		if err := os.WriteFile(path+"."+name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		db, _ := open(t, bolt.Config{Path: path + "." + name})
		pairs, err := db.List(context.Background(), "")
		if name == "whole" {
			if len(pairs) != 200 || err != nil {
				t.Errorf("%s: %d pairs, %v", name, len(pairs), err)
			}
		} else if !errors.Is(err, bolt.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
