package filedb_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/kvdbsync"
)

var (
	_ kvdbsync.Connector = (*filedb.DB)(nil)
	_ kvdbsync.Writer    = (*filedb.DB)(nil)
	_ kvdbsync.Publisher = (*filedb.DB)(nil)
)

// The status file is one that the connector itself could read, in both its forms.
func TestStatusFileIsOfTheFormThatIsRead(t *testing.T) {
	for _, name := range []string{"status.json", "status.yaml"} {
		path := filepath.Join(t.TempDir(), name)
		db := newDB(t, filedb.Config{Paths: []string{t.TempDir()}, StatusPath: path})
		s, err := db.Session(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		key, value := root+`config-status/a "b" <é>`, `{"state":"INVALID","details":["a <b> & \"c\""]}`
		if err := s.Apply(t.Context(), []kvdbsync.Pair{{Key: key, Value: []byte(value)}, {Key: root + "config-status/b", Value: []byte("{}")}}); err != nil {
			t.Fatal(err)
		}
		got, err := newDB(t, filedb.Config{Paths: []string{path}}).List(t.Context(), root)
		if err != nil || len(got) != 2 || got[0].Key != key || !sameJSON(got[0].Value, []byte(value)) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		for _, list := range []func() ([]kvdbsync.Pair, error){
			func() ([]kvdbsync.Pair, error) { return db.List(t.Context(), root+"config-status/") },
			func() ([]kvdbsync.Pair, error) { return s.List(t.Context(), root+"config-status/") },
		} {
			if got, err := list(); err != nil || len(got) != 2 || got[0].Key != key || string(got[0].Value) != value {
				t.Errorf("%s: listed %q, %v", name, got, err)
			}
		}
		if got, err := db.Get(t.Context(), key); string(got) != value || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); len(left) != 1 || err != nil {
			t.Errorf("files left beside it: %v, %v", left, err)
		}
	}
}

// What an agent that died has left is found by the next.
func TestTheNextSessionFindsWhatWasLeft(t *testing.T) {
	cfg := filedb.Config{Paths: []string{t.TempDir()}, StatusPath: filepath.Join(t.TempDir(), "status.json")}
	publish := func(key string) kvdbsync.Session {
		s, err := newDB(t, cfg).Session(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(t.Context(), []kvdbsync.Pair{{Key: key, Value: []byte("{}")}}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	publish("/left") // and no Close
	s := publish("/mine")
	if pairs, err := s.List(t.Context(), "/"); err != nil || len(pairs) != 2 {
		t.Errorf("%q, %v", pairs, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if pairs, err := newDB(t, cfg).List(t.Context(), "/"); err != nil || len(pairs) != 1 || pairs[0].Key != "/left" {
		t.Errorf("after Close: %q, %v", pairs, err)
	}
}

func TestWhatIsNoStatusFileIsNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"hosts": "127.0.0.1 localhost\n", "other.json": `{"a": 1}`, "list.json": "[]"} {
		path := filepath.Join(dir, name)
		write(t, path, text)
		_, err := newDB(t, filedb.Config{Paths: []string{t.TempDir()}, StatusPath: path}).Session(t.Context(), 0)
		if want := "status-path: " + path + " is no status file: remove it, or choose another path"; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if now, err := os.ReadFile(path); string(now) != text || err != nil {
			t.Errorf("%s became %q, %v", name, now, err)
		}
	}
}

func TestSessionsThatCannotWrite(t *testing.T) {
	paths := []string{t.TempDir()}
	if _, err := newDB(t, filedb.Config{Paths: paths}).Session(t.Context(), 0); !errors.Is(err, kvdbsync.ErrReadOnly) || !strings.Contains(err.Error(), "set status-path") {
		t.Errorf("without a path: %v", err)
	}
	path := filepath.Join(t.TempDir(), "status.json")
	s, err := newDB(t, filedb.Config{Paths: paths, StatusPath: path}).Session(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Apply(t.Context(), []kvdbsync.Pair{{Key: "/a", Value: []byte("{}")}, {Key: "/b", Value: []byte("CONFIGURED")}})
	if err == nil || !strings.HasPrefix(err.Error(), "status-path: value of /b: expected JSON: ") {
		t.Errorf("a value that is no JSON: %v", err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), []kvdbsync.Pair{{Key: "/a", Value: []byte("{}")}}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a folder in its place: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); len(left) != 1 || err != nil {
		t.Errorf("files left beside it: %v, %v", left, err)
	}
}

// A file that somebody holds open for writing delays nobody but the first batch of a watch. What it
// said before counts.
func TestReadsDoNotWaitForWriters(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", "data: [{key: config/a, value: 1}]")
	write(t, dir+"/b.yaml", "data: [{key: config/b, value: 1}]")
	db := newDB(t, filedb.Config{Paths: []string{dir}, StatusPath: filepath.Join(t.TempDir(), "status.json"), Grace: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := db.Session(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	read := func(when string, want int) {
		t.Helper()
		for name, list := range map[string]func(context.Context, string) ([]kvdbsync.Pair, error){"List": db.List, "Session.List": s.List} {
			if pairs, err := list(ctx, root); err != nil || len(pairs) != want {
				t.Errorf("%s: %s has %d pairs, %v; want %d", when, name, len(pairs), err, want)
			}
		}
		if value, err := db.Get(ctx, root+"config/a"); err != nil || string(value) != "1" {
			t.Errorf("%s: Get: %q, %v", when, value, err)
		}
		if err := db.Put(ctx, root+"config/a", nil); !errors.Is(err, kvdbsync.ErrReadOnly) {
			t.Errorf("%s: Put: %v", when, err)
		}
	}
	for _, name := range []string{"/new.yaml", "/b.yaml"} {
		f, err := os.OpenFile(dir+name, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	read("not read before", 1)
	write(t, dir+"/c.yaml", "data: [{key: config/c, value: 1}]")
	read("a file is added", 2)
	f, err := os.OpenFile(dir+"/c.yaml", os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read("read before", 2)
}

// Whatever writes, nothing is written, and it is told which file to edit.
func TestConfigurationIsWrittenByOthers(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", "data: [{key: config/a, value: {n: 1}}]")
	db := newDB(t, filedb.Config{Paths: []string{dir}})
	ctx, a, b := t.Context(), root+"config/a", root+"config/b"
	there := "store is read-only: edit " + dir + "/a.yaml:1, where " + a + " stands"
	absent := "store is read-only: add " + b + " to a file in " + dir
	_, overwrite := db.PutIfAbsent(ctx, a, []byte("{}"))
	_, deleted := db.Delete(ctx, a)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{db.Put(ctx, a, []byte("{}")), there},
		{db.Put(ctx, b, []byte("{}")), absent},
		{overwrite, there},
		{deleted, "store is read-only: remove " + a + " from " + dir + "/a.yaml:1"},
		{db.Apply(ctx, []kvdbsync.Pair{{Key: root + "config/absent"}, {Key: b, Value: []byte("{}")}}), absent},
		{db.Apply(ctx, []kvdbsync.Pair{{Key: a}}), "store is read-only: remove " + a + " from " + dir + "/a.yaml:1"},
	} {
		if !errors.Is(tt.err, kvdbsync.ErrReadOnly) || tt.err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", tt.err, tt.want)
		}
	}
	if err := db.Apply(ctx, []kvdbsync.Pair{{Key: root + "config/absent"}}); err != nil {
		t.Errorf("deleting nothing: %v", err)
	}
}
