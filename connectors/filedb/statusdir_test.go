package filedb

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/plainfile"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/kvdbsync"
)

// Each key has a file of its own below the folder, and none is where another needs a folder.
func TestKeysAreFiles(t *testing.T) {
	part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", ".", "..", "a", "a.json", ".json", ".a", "%", "%2E", "a b", "\x00", "10.0.0.0"}))
	key := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(part, 1, 4).Draw(t, "parts")
		for i, p := range parts {
			parts[i] = strings.ReplaceAll(p, "/", "")
		}
		return "/" + strings.Join(parts, "/")
	})
	d := statusDir{"/var/status"}
	draw.Check(t, func(t *rapid.T) {
		a, b := key.Draw(t, "a"), key.Draw(t, "b")
		pathA, errA := d.file(a)
		pathB, errB := d.file(b)
		if got, ok := d.key(pathA); got != a || !ok || errA != nil || errB != nil {
			t.Fatalf("%q is %q, which is %q, %v; %v, %v", a, pathA, got, ok, errA, errB)
		}
		if !within(pathA, d.path) || pathA != filepath.Clean(pathA) || (pathA == pathB) != (a == b) || within(pathA, pathB) && a != b {
			t.Fatalf("%q is %q, %q is %q", a, pathA, b, pathB)
		}
	})
}

// A change touches the files of its keys alone; what else lies in the folder is nobody's.
func TestStatusFolder(t *testing.T) {
	d := statusDir{filepath.Join(t.TempDir(), "status")}
	change := func(pairs ...kvdbsync.Pair) {
		t.Helper()
		if err := d.change(pairs); err != nil {
			t.Fatal(err)
		}
	}
	put := func(key string) kvdbsync.Pair { return kvdbsync.Pair{Key: key, Value: []byte("{}")} }
	change(put("/v/a"), put("/v/a/b"), put("/v/a.json/b"), put("/w/c"))
	if err := errors.Join(os.WriteFile(d.path+"/v/README", nil, 0o600), os.WriteFile(d.path+"/v/.a.json.123", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(d.path + "/v/a.json")
	if err != nil {
		t.Fatal(err)
	}
	change(kvdbsync.Pair{Key: "/v/a/b"}, kvdbsync.Pair{Key: "/absent"}, put("/w/c"))
	if after, err := os.Stat(d.path + "/v/a.json"); err != nil || !os.SameFile(before, after) {
		t.Errorf("a file that nobody changed is another: %v", err)
	}
	if _, err := os.Stat(d.path + "/v/a"); !os.IsNotExist(err) {
		t.Errorf("an empty folder is left: %v", err)
	}
	for prefix, want := range map[string]string{"": "/v/a /v/a.json/b /w/c", "/v/a": "/v/a /v/a.json/b", "/v/a.json/": "/v/a.json/b", "/absent/": "", "/v/b": ""} {
		pairs, err := d.under(prefix)
		var keys []string
		for _, p := range pairs {
			keys = append(keys, p.Key)
		}
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != want || err != nil {
			t.Errorf("under %q: %q, %v; want %q", prefix, got, err, want)
		}
	}
}

// A pipe in the folder has no value, and does not block the listing, which nobody could end. The next change of its key
// replaces it. A pipe in the place of the file is an error.
func TestStatusPipes(t *testing.T) {
	dir := t.TempDir()
	d, file := statusDir{dir}, statusFile{path: filepath.Join(dir, "status")}
	if err := errors.Join(unix.Mkfifo(dir+"/a.json", 0o600), unix.Mkfifo(file.path, 0o600)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if pairs, err := d.under("/"); len(pairs) > 0 || err != nil {
			t.Errorf("the folder has %v, %v", pairs, err)
		}
		put := kvdbsync.Pair{Key: "/a", Value: []byte("{}")}
		if err := d.change([]kvdbsync.Pair{put}); err != nil {
			t.Error(err)
		}
		if pairs, err := d.under("/"); len(pairs) != 1 || err != nil {
			t.Errorf("after a change, the folder has %v, %v", pairs, err)
		}
		if err := file.begin(); !errors.Is(err, plainfile.ErrNoFile) {
			t.Errorf("the file: %v", err)
		}
	}()
	select {
	case <-ended:
	case <-time.After(testkit.Patience):
		t.Fatal("it blocks")
	}
}
