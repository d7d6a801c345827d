package filedb_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/internal/testkit"
)

// A log that may be read while it is written, and that may be acted on.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
	then func(line string)
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.then != nil {
		l.then(string(p))
	}
	return l.text.Write(p)
}

func (l *logText) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

func TestLostNotificationsLoseNothing(t *testing.T) {
	const most = "/proc/sys/fs/inotify/max_queued_events"
	var queue int
	text, err := os.ReadFile(most)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &queue); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir+"/a.yaml", "data: [{key: config/a, value: 1}]")
	log := logText{then: func(line string) {
		if strings.Contains(line, "file notifications were lost") {
			write(t, dir+"/c.yaml", "data: [{key: config/c, value: 2}]")
		}
	}}
	db := newLoggingDB(t, filedb.Config{Paths: []string{dir}, Rescan: time.Hour}, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	last := map[string]string{}
	for b, err := range db.Watch(ctx, root) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			last[e.Key] = string(e.Value)
		}
		if b.Synced {
			// While this batch is looked at, nobody takes notifications but the library, a
			// buffer full.
			write(t, dir+"/noise0.txt", "")
			write(t, dir+"/noise1.txt", "")
			for i := range queue + 10_000 {
				if err := os.Chmod(fmt.Sprintf("%s/noise%d.txt", dir, i%2), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(t, dir+"/a.yaml", "data: [{key: config/a, value: 2}]")
			write(t, dir+"/b.yaml", "data: [{key: config/b, value: 2}]")
		}
		if last[root+"config/c"] != "" {
			break
		}
	}
	if last[root+"config/a"] != "2" || last[root+"config/b"] != "2" || last[root+"config/c"] != "2" {
		t.Errorf("in the end: %v; loss noticed %d times", last, log.count("file notifications were lost"))
	}
}

func TestNoWatchesLeftMeansPolling(t *testing.T) {
	for _, limit := range []string{"max_inotify_watches", "max_inotify_instances"} {
		t.Run(limit, func(t *testing.T) {
			if !inUserNamespace(t, 0) {
				return
			}
			file := "/proc/sys/user/" + limit
			if err := os.WriteFile(file, []byte("0"), 0); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			write(t, dir+"/a.yaml", "data: [{key: config/a, value: 1}]")
			var log logText
			db := newLoggingDB(t, filedb.Config{Paths: []string{dir}, Poll: 20 * time.Millisecond, Rescan: time.Hour}, slog.New(slog.NewTextHandler(&log, nil)))
			m := mirrored(t, db)
			for i := range 10 {
				write(t, dir+"/a.yaml", fmt.Sprintf("data: [{key: config/a, value: %d}]", i))
				m.holds(t, "config/a", fmt.Sprint(i))
			}
			if n := log.count("kernel has no file watches left"); n != 1 {
				t.Errorf("said %d times that files are polled", n)
			}

			// When there are some again, it is told of changes again.
			if err := os.WriteFile(file, []byte("100"), 0); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir+"/sub", 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, dir+"/sub/b.yaml", "data: [{key: config/b, value: 1}]")
			m.holds(t, "config/b", "1")
		})
	}
}

func TestRightsLostAndGiven(t *testing.T) {
	if !inUserNamespace(t, 1000) {
		return
	}
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/a.yaml", "data: [{key: config/a, value: 1}]")
	write(t, dir+"/sub/b.yaml", "data: [{key: config/b, value: 1}]")
	m := mirrored(t, newDB(t, filedb.Config{Paths: []string{dir}, VanishGrace: 1}))
	rounds := 0
	look := func() { // at everything, and again, when all grace is over
		t.Helper()
		for range 3 {
			rounds++
			write(t, dir+"/c.yaml", fmt.Sprintf("data: [{key: config/c, value: %d}]", rounds))
			m.holds(t, "config/c", fmt.Sprint(rounds))
		}
	}
	chmod := func(path string, mode os.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	problem := func(want string) {
		t.Helper()
		m.until(t, want, func() bool { return len(m.problems) == 1 && m.problems[0].Error() == want })
	}
	none := func() { m.until(t, "no problem", func() bool { return len(m.problems) == 0 }) }

	chmod(dir+"/a.yaml", 0)
	look()
	problem(dir + "/a.yaml: cannot be read: permission denied; what the file said before still counts")
	chmod(dir+"/a.yaml", 0o600)
	none()

	chmod(dir+"/sub", 0)
	problem(dir + "/sub: cannot be read: permission denied")
	look()
	chmod(dir+"/sub", 0o700)
	none()
	write(t, dir+"/sub/b.yaml", "data: [{key: config/b, value: 2}]")
	m.holds(t, "config/b", "2")
	if len(m.deleted) > 0 {
		t.Errorf("gone in between: %v", m.deleted)
	}
}

// Who may not take a lease cannot ask whether a file is being written.
func TestForeignFileMustBeQuiet(t *testing.T) {
	dir := os.Getenv("FILEDB_TEST_FOREIGN")
	if dir == "" {
		testkit.Need(t, "root, to have a file of someone else's", os.Geteuid() == 0)
		dir = t.TempDir()
		write(t, dir+"/a.yaml", "data: [{key: config/a, value: 1}]")
		for _, change := range []error{os.Chmod(dir+"/a.yaml", 0o666), os.Chown(dir+"/a.yaml", 12345, -1), os.Chmod(dir, 0o777)} {
			if change != nil {
				t.Fatal(change)
			}
		}
		t.Setenv("FILEDB_TEST_FOREIGN", dir)
	}
	if !inUserNamespace(t, 1000) {
		return
	}
	f, err := os.OpenFile(dir+"/a.yaml", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err == nil {
		t.Fatal("a lease on a foreign file was given")
	}
	m := mirrored(t, newDB(t, filedb.Config{Paths: []string{dir}, Grace: 300 * time.Millisecond}))
	m.holds(t, "config/a", "1")
	for i := range 20 {
		write(t, dir+"/a.yaml", fmt.Sprintf("data: [{key: config/a, value: %d}]\n", i))
		m.holds(t, "config/a", fmt.Sprint(i))
	}

	// The end of the file is missing: half of it, or meant so.
	write(t, dir+"/a.yaml", "data:\n- {key: config/a, value: 1}\n- {key: config/b, value: 1}\n")
	m.holds(t, "config/b", "1")
	for _, half := range []string{"data:\n- {key: config/a, value: 2}\n", "# nothing but a head\n", ""} {
		write(t, dir+"/a.yaml", half)
		want := dir + "/a.yaml: " + root + "config/b is missing, which was the last entry; this file system does not tell whether somebody is still writing the file: " +
			"if it is complete, add a last line \"...\"; what the file said before still counts"
		m.until(t, want, func() bool { return len(m.problems) == 1 && m.problems[0].Error() == want })
	}
	if len(m.deleted) > 0 {
		t.Errorf("gone in between: %v", m.deleted)
	}
	write(t, dir+"/a.yaml", "data:\n- {key: config/a, value: 2}\n...\n")
	m.holds(t, "config/a", "2")
	m.until(t, "the end of config/b", func() bool { _, there := m.events[root+"config/b"]; return !there && len(m.problems) == 0 })

	// Half a line is waited for, longer than a busy machine needs to write the other half.
	m = mirrored(t, newDB(t, filedb.Config{Paths: []string{dir}, Grace: testkit.Patience}))
	m.holds(t, "config/a", "2")
	write(t, dir+"/a.yaml", "data:\n- key: config/c\n  value: 10.1.0.1/2")
	write(t, dir+"/sync.yaml", "data: [{key: sync, value: 1}]\n")
	m.holds(t, "sync", "1")
	write(t, dir+"/a.yaml", "data:\n- key: config/c\n  value: 10.1.0.1/24\n...\n")
	m.holds(t, "config/c", `"10.1.0.1/24"`)
	for _, b := range m.batches {
		for _, e := range b.Events {
			if string(e.Value) == `"10.1.0.1/2"` {
				t.Error("half a line counted")
			}
		}
	}
}

// A file may come to a new directory before that is watched, or just while it is.
func TestFilesInNewDirectories(t *testing.T) {
	dir := t.TempDir()
	m := mirrored(t, newDB(t, filedb.Config{Paths: []string{dir}, Rescan: time.Hour, VanishGrace: 1}))
	for i := range 300 {
		sub := fmt.Sprintf("%s/d%d", dir, i)
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); time.Since(begun) < time.Duration(i)*time.Microsecond; {
		}
		write(t, sub+"/a.yaml", fmt.Sprintf("data: [{key: config/a, value: %d}]", i))
		m.holds(t, "config/a", fmt.Sprint(i))
		if err := os.RemoveAll(sub); err != nil {
			t.Fatal(err)
		}
		m.until(t, "its end", func() bool { return len(m.events) == 0 })
	}
}

// A deployment keeps its releases and swaps a link above the configured path.
func TestALinkAboveTheFilesIsSwapped(t *testing.T) {
	dir := t.TempDir()
	for _, release := range []string{"1", "2"} {
		network := filepath.Join(dir, "releases", release, "network")
		if err := os.MkdirAll(network, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, network+"/a.yaml", "data: [{key: config/a, value: "+release+"}]")
		if err := os.Symlink("releases/"+release, filepath.Join(dir, "current"+release)); err != nil {
			t.Fatal(err)
		}
	}
	current := filepath.Join(dir, "current")
	swap := func(release string) {
		if err := os.Rename(current+release, current); err != nil {
			t.Fatal(err)
		}
	}
	swap("1")
	m := mirrored(t, newDB(t, filedb.Config{Paths: []string{current + "/network"}, Rescan: time.Hour}))
	m.holds(t, "config/a", "1")
	swap("2")
	m.holds(t, "config/a", "2")
}

// A file that is always being written delays the first batch, but not for ever.
func TestEndlessWriter(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", "data: [{key: config/a, value: 1}]")
	endless, err := os.Create(dir + "/stats.json")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			fmt.Fprintln(endless, "{}")
			<-tick.C
		}
	}()
	defer func() { cancel(); <-ended; endless.Close() }()
	m := mirrored(t, newDB(t, filedb.Config{Paths: []string{dir}, Grace: 20 * time.Millisecond}))
	m.holds(t, "config/a", "1")
	write(t, dir+"/a.yaml", "data: [{key: config/a, value: 2}]")
	m.holds(t, "config/a", "2")
}

func TestLargeValue(t *testing.T) {
	dir := t.TempDir()
	m := mirrored(t, newDB(t, filedb.Config{Paths: []string{dir}}))
	large := `"` + strings.Repeat("x", 10<<20) + `"`
	write(t, dir+"/large.json", `{"data":[{"key":"config/large","value":`+large+`}]}`)
	write(t, dir+"/small.yaml", "data: [{key: config/small, value: 1}]")
	m.holds(t, "config/small", "1")
	m.holds(t, "config/large", large)

	if err := os.Truncate(dir+"/large.json", 65<<20); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "large.json") + ": has 68157440 bytes, more than max-file-size allows (64MiB): split it, or raise max-file-size in filedb.conf; what the file said before still counts"
	m.until(t, want, func() bool { return len(m.problems) == 1 && m.problems[0].Error() == want })
	m.holds(t, "config/large", large)
}
