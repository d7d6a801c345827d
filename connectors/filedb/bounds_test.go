package filedb_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/connectors/filedb"
)

// within bounds: what is beyond one is not read, that is told, and what was read stays.
func TestBounds(t *testing.T) {
	one := func(key string) string { return fmt.Sprintf("data: [{key: config/%s, value: 1}]\n", key) }
	tests := []struct {
		bound  string
		cfg    filedb.Config
		exceed func(t *testing.T, dir string)
		want   string // what the problem says after the path of the folder
	}{
		{"max-files", filedb.Config{MaxFiles: 3}, func(t *testing.T, dir string) {
			for i := range 5 {
				write(t, fmt.Sprintf("%s/x%d.yaml", dir, i), one(fmt.Sprint("x", i)))
			}
		}, ": has too many YAML and JSON files, %s/x2.yaml among them, more than max-files allows (3): the rest is not read"},
		{"max-entries", filedb.Config{Rescan: 50 * time.Millisecond, MaxEntries: 20}, func(t *testing.T, dir string) {
			for i := range 30 {
				write(t, fmt.Sprintf("%s/sub/%d.txt", dir, i), "")
			}
		}, ": has too many files and folders of any sort, the last seen in %s/sub, more than max-entries allows (20)"},
		{"max-depth", filedb.Config{MaxDepth: 2}, func(t *testing.T, dir string) {
			if err := os.MkdirAll(dir+"/sub/b/c/d", 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, dir+"/sub/b/c/d/x.yaml", one("x"))
		}, ": has folders that are nested too deep, such as %s/sub/b/c, more than max-depth allows (2)"},
		{"max-total-size", filedb.Config{MaxTotalSize: 300}, func(t *testing.T, dir string) {
			write(t, dir+"/x.yaml", one("x")+strings.Repeat("# more\n", 100))
		}, ": has files that are too large together, %s/x.yaml among them, more than max-total-size allows (300 bytes)"},
		{"max-file-size", filedb.Config{MaxFileSize: 300}, func(t *testing.T, dir string) {
			write(t, dir+"/x.yaml", one("x")+strings.Repeat("# more\n", 100))
		}, "/x.yaml: has 734 bytes, more than max-file-size allows (300 bytes): split it, or raise max-file-size in filedb.conf"},
		{"max-yaml-size", filedb.Config{MaxYAMLSize: 300}, func(t *testing.T, dir string) {
			write(t, dir+"/x.yaml", one("x")+strings.Repeat("# more\n", 100))
		}, "/x.yaml: has 734 bytes; YAML, and JSON in another than the key/value form, may have 300 bytes: split it, or raise max-yaml-size"},
		{"max-yaml-nodes", filedb.Config{MaxYAMLNodes: 300}, func(t *testing.T, dir string) {
			write(t, dir+"/x.yaml", one("x")+"more: ["+strings.Repeat("a,", 200)+"]\n")
		}, "/x.yaml: has about 414 nodes (names, values, lists), more than max-yaml-nodes allows (300): split it, write it as JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.bound, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(dir+"/sub", 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, dir+"/a.yaml", one("a"))
			write(t, dir+"/sub/z.yaml", one("z"))
			tt.cfg.Paths, tt.cfg.VanishGrace = []string{dir}, time.Millisecond
			m := mirrored(t, newDB(t, tt.cfg))
			m.holds(t, "config/a", "1")
			m.holds(t, "config/z", "1")

			tt.exceed(t, dir)
			want := tt.want
			if strings.Contains(want, "%s") {
				want = fmt.Sprintf(want, dir)
			}
			m.until(t, want, func() bool { return len(m.problems) == 1 && strings.HasPrefix(m.problems[0].Error(), dir+want) })
			for i := range 3 { // also after all grace is over
				write(t, dir+"/a.yaml", strings.Replace(one("a"), "1", fmt.Sprint(2+i), 1))
				m.holds(t, "config/a", fmt.Sprint(2+i))
			}
			if len(m.deleted) > 0 {
				t.Errorf("gone: %v", m.deleted)
			}
			paths, err := filepath.Glob(dir + "/x*")
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range append(paths, dir+"/sub/b") {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
			if tt.bound == "max-entries" {
				if err := os.RemoveAll(dir + "/sub"); err != nil {
					t.Fatal(err)
				}
			}
			m.until(t, "no problem", func() bool { return len(m.problems) == 0 })
		})
	}
}

// A link to everything there is: told, and not followed.
func TestALinkToTheRoot(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", "data: [{key: config/a, value: 1}]\n")
	if err := os.Symlink("/", dir+"/0"); err != nil {
		t.Fatal(err)
	}
	m := mirrored(t, newDB(t, filedb.Config{Paths: []string{dir}}))
	m.holds(t, "config/a", "1")
	want := dir + "/0: is a link to /, which is outside of configuration-paths: not followed; add that to configuration-paths, or set follow-links in filedb.conf"
	m.until(t, want, func() bool { return len(m.problems) == 1 && m.problems[0].Error() == want })
}

// A link that may be followed leads to as much as the bounds allow, and the agent's
// own files, which are nearer, come first.
func TestALinkToTheRootThatIsFollowed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", "data: [{key: config/a, value: 1}]\n")
	if err := os.Symlink("/", dir+"/0"); err != nil {
		t.Fatal(err)
	}
	// Other programs write files below the root all the time. The first batch waits five
	// times Grace for them, and large files take long to read.
	m := mirrored(t, newDB(t, filedb.Config{
		Paths: []string{dir}, FollowLinks: true, MaxFiles: 50, MaxEntries: 2000,
		Grace: 50 * time.Millisecond, MaxFileSize: 64 << 10,
	}))
	m.holds(t, "config/a", "1")
	m.until(t, "a bound", func() bool {
		for _, p := range m.problems {
			if strings.HasPrefix(p.Error(), dir+": has too many ") {
				return true
			}
		}
		return false
	})
	m.until(t, "the file systems", func() bool {
		for _, p := range m.problems {
			if strings.HasPrefix(p.Error(), dir+"/0/proc: lies on another file system than the folder that a link led to") {
				return true
			}
		}
		return false
	})
}

// A look at a great many files ends with its context.
func TestALookEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", "data: [{key: config/a, value: 1}]\n")
	write(t, dir+"/large.yaml", "data:\n"+strings.Repeat("- {key: config/x, value: {a: [1, 2, 3]}}\n", 40_000))
	ctx, cancel := context.WithCancel(t.Context())
	begun := time.AfterFunc(5*time.Millisecond, cancel)
	defer begun.Stop()
	db := newDB(t, filedb.Config{Paths: []string{dir}, MaxYAMLNodes: 600_000})
	for b, err := range db.Watch(ctx, root) {
		t.Errorf("yielded %d events, %v: the file is not large enough for this test", len(b.Events), err)
		break
	}
	if _, err := db.List(ctx, root); err == nil {
		t.Error("a list whose context has ended succeeded")
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]filedb.Size{"64MiB": 64 << 20, "1 GiB": 1 << 30, "10KiB": 10 << 10, "67108864": 64 << 20} {
		var cfg filedb.Config
		if err := yaml.Unmarshal([]byte("max-file-size: "+text), &cfg); err != nil || cfg.MaxFileSize != want {
			t.Errorf("%s: %d, %v", text, cfg.MaxFileSize, err)
		}
	}
	for _, text := range []string{"64MB", "-1", "[1]", "99999999GiB", "many"} {
		var cfg filedb.Config
		if err := yaml.Unmarshal([]byte("max-file-size: "+text), &cfg); err == nil || !strings.Contains(err.Error(), "expected a number of bytes") {
			t.Errorf("%s: %d, %v", text, cfg.MaxFileSize, err)
		}
	}
	for size, want := range map[filedb.Size]string{64 << 20: "64MiB", 1 << 30: "1GiB", 1500: "1500 bytes", 2048: "2KiB"} {
		if got := size.String(); got != want {
			t.Errorf("%d: %s, want %s", int64(size), got, want)
		}
	}
	_, err := filedb.New(filedb.Config{Paths: []string{"/x"}, MaxDepth: -1}, root, slog.New(slog.DiscardHandler))
	if err == nil || err.Error() != "max-depth: -1: expected a number above zero" {
		t.Error(err)
	}
}
