package statestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/plainfile"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/statestore"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// A logbook is a log that a test can read.
type logbook struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logbook) options() statestore.Options {
	return statestore.Options{Log: slog.New(slog.NewTextHandler(l, nil)), Affects: "the test"}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string, opts statestore.Options) *statestore.Store {
	t.Helper()
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s, err := statestore.Open(dir, opts)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() }) // some tests close it
	return s
}

// changes reads "a=1 b=": values by key; no value forgets.
func changes(text string) map[string][]byte {
	out := map[string][]byte{}
	for f := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(f, "=")
		if out[key] = []byte(value); value == "" {
			out[key] = nil
		}
	}
	return out
}

func save(t testing.TB, s *statestore.Store, text string) {
	t.Helper()
	must(t, s.Save(maps.All(changes(text))))
}

func remembered(s *statestore.Store) map[string]string {
	out := map[string]string{}
	for key, value := range s.Load() {
		out[key] = string(value)
	}
	return out
}

func expect(t testing.TB, s *statestore.Store, text string) {
	t.Helper()
	want := map[string]string{}
	for key, value := range changes(text) {
		want[key] = string(value)
	}
	if got := remembered(s); !maps.Equal(got, want) {
		t.Errorf("remembered %.200q, want %.200q", got, want)
	}
}

// killed is a copy of a folder, as a kill of the process that has it would leave it.
func killed(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "state")
	must(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

func TestWhatIsSavedSurvivesAKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, statestore.Options{})
	if s.Stale() != nil {
		t.Errorf("a new state is stale: %v", s.Stale())
	}
	save(t, s, "a=1 b=2")
	save(t, s, "a= c=3")
	must(t, s.Record(maps.All(changes("d=4"))))
	after := open(t, killed(t, dir), statestore.Options{})
	expect(t, after, "b=2 c=3 d=4")
	if after.Stale() != nil {
		t.Errorf("stale after a kill: %v", after.Stale())
	}
	save(t, after, "e=5")
	must(t, after.Close())
	if err := after.Save(maps.All(changes("f=6"))); !errors.Is(err, statestore.ErrClosed) {
		t.Errorf("saved after Close: %v", err)
	}
}

func TestSync(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, statestore.Options{})
	save(t, s, "a=1")
	must(t, s.Sync())
	if noted, size := syncedLength(t, filepath.Join(dir, "journal.1")); noted != size {
		t.Errorf("%d of %d bytes are synced", noted, size)
	}
	must(t, s.Close())
	if err := s.Sync(); !errors.Is(err, statestore.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAFolderHasOneOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // for the time that it waits
		dir := t.TempDir()
		s := open(t, dir, statestore.Options{})
		if _, err := statestore.Open(dir, statestore.Options{}); !errors.Is(err, statestore.ErrInUse) {
			t.Errorf("opened twice: %v", err)
		}
		must(t, s.Close())
		must(t, open(t, dir, statestore.Options{}).Close())
	})
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, statestore.Options{CompactAt: 1})
	save(t, s, "a=1")
	must(t, statestore.Compact(s))
	for name, want := range map[string]os.FileMode{"": 0o700, "journal.2": 0o600, "snapshot": 0o600, "complete": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%q has mode %v, want %v", name, info.Mode().Perm(), want)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// runUntil saves something and has Run tend the store until done.
func runUntil(t *testing.T, s *statestore.Store, done func() bool, text string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	save(t, s, text)
	for late := time.Now().Add(testkit.Patience); !done(); {
		if time.Now().After(late) {
			t.Fatal("never done")
		}
		<-time.After(5 * time.Millisecond)
	}
	cancel()
	must(t, <-ended)
}

// Only the last journal can end with a record that a kill has cut short.
func TestACutJournalBeforeAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, statestore.Options{CompactAt: 1})
	save(t, s, "a=1")
	save(t, s, "b=2")
	before := killed(t, dir)
	must(t, statestore.Compact(s))
	save(t, s, "c=3")
	must(t, os.Rename(filepath.Join(dir, "journal.2"), filepath.Join(before, "journal.2")))
	whole := killed(t, before)
	must(t, os.Truncate(filepath.Join(before, "journal.1"), int64(len(readAll(t, filepath.Join(before, "journal.1")))-1)))
	if after := open(t, whole, statestore.Options{}); after.Stale() != nil {
		t.Errorf("two whole journals are stale: %v", after.Stale())
	}
	after := open(t, before, statestore.Options{})
	if after.Stale() == nil || !strings.Contains(after.Stale().Error(), "journal.1: the last record is cut short") {
		t.Errorf("stale: %v", after.Stale())
	}
	expect(t, after, "a=1 c=3")
}

func readAll(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}

// A journal that is cut at any byte shows a beginning of what was saved, group by group,
// and goes on from there.
func TestAJournalCutAtEveryByte(t *testing.T) {
	dir := filepath.Join(disk(t, "size=16m"), "state")
	s := open(t, dir, statestore.Options{})
	states := []map[string]string{{}}
	for i := range 12 {
		save(t, s, fmt.Sprintf("a=%d b%d=x b%d= c=%s", i, i, i-2, strings.Repeat("y", i)))
		states = append(states, remembered(s))
	}
	path := filepath.Join(dir, "journal.1")
	whole, err := os.ReadFile(path)
	must(t, err)
	const head = 32
	at := 0
	copied := dir + ".copy"
	must(t, os.CopyFS(copied, os.DirFS(dir)))
	for cut := head; cut <= len(whole); cut++ {
		must(t, os.WriteFile(filepath.Join(copied, "journal.1"), whole[:cut], 0o600))
		after := open(t, copied, statestore.Options{})
		if after.Stale() != nil {
			t.Fatalf("cut at %d it is stale: %v", cut, after.Stale())
		}
		got := remembered(after)
		if at+1 < len(states) && maps.Equal(got, states[at+1]) {
			at++
		}
		if !maps.Equal(got, states[at]) {
			t.Fatalf("cut at %d it remembers %v, want %v", cut, got, states[at])
		}
		save(t, after, "after=1")
		must(t, after.Close())
		again := open(t, copied, statestore.Options{})
		want := maps.Clone(states[at])
		want["after"] = "1"
		if got := remembered(again); !maps.Equal(got, want) {
			t.Fatalf("cut at %d and gone on from there it remembers %v, want %v", cut, got, want)
		}
		must(t, again.Close())
	}
	if at != len(states)-1 {
		t.Errorf("only %d of %d states were seen", at, len(states)-1)
	}
}

// The changes of one call are there all or none, however many they are.
func TestLargeChangesAreOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, statestore.Options{})
	save(t, s, "old=1")
	large := changes("old=")
	for i := range 5 {
		large[fmt.Sprint(i)] = bytes.Repeat([]byte{byte(i)}, 700<<10)
	}
	must(t, s.Save(maps.All(large)))
	if got := remembered(open(t, killed(t, dir), statestore.Options{})); len(got) != 5 || len(got["4"]) != 700<<10 {
		t.Errorf("%d values, of %d bytes", len(got), len(got["4"]))
	}
	size, err := os.Stat(filepath.Join(dir, "journal.1"))
	must(t, err)
	for _, lost := range []int64{1, 10, 800 << 10, 2 << 20, 3 << 20} {
		copied := killed(t, dir)
		must(t, os.Truncate(filepath.Join(copied, "journal.1"), size.Size()-lost))
		expect(t, open(t, copied, statestore.Options{}), "old=1")
	}
}

// Random changes, merges, kills and endings leave what was saved last.
func TestRandomLives(t *testing.T) {
	lives, disk := 0, disk(t, "size=64m")
	draw.Check(t, func(rt *rapid.T) {
		lives++
		dir := filepath.Join(disk, fmt.Sprint(lives))
		opts := statestore.Options{CompactAt: 200}
		s := open(t, dir, opts)
		want := map[string]string{}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"save", "save", "save", "record", "merge", "kill", "close"}).Draw(rt, "step") {
			case "save", "record":
				some := map[string][]byte{}
				for range rapid.IntRange(0, 5).Draw(rt, "changes") {
					key := rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(rt, "key")
					if value := rapid.StringN(0, 20, 20).Draw(rt, "value"); rapid.Bool().Draw(rt, "put") {
						some[key], want[key] = []byte(value), value
					} else {
						some[key] = nil
						delete(want, key)
					}
				}
				must(t, s.Save(maps.All(some)))
			case "merge":
				must(t, statestore.Compact(s))
			case "kill":
				next := dir + "k"
				must(t, os.CopyFS(next, os.DirFS(dir)))
				must(t, errors.Join(s.Close(), os.RemoveAll(dir)))
				dir = next
				s = open(t, dir, opts)
			case "close":
				must(t, s.Close())
				s = open(t, dir, opts)
			}
			if got := remembered(s); !maps.Equal(got, want) || s.Stale() != nil {
				rt.Fatalf("remembered %q, want %q; stale: %v", got, want, s.Stale())
			}
		}
		must(t, errors.Join(s.Close(), os.RemoveAll(dir)))
	})
}

// Damage of every sort is told, makes the store stale until Renew, and leaves what can
// still be read.
func TestDamage(t *testing.T) {
	healthy := filepath.Join(t.TempDir(), "state")
	s := open(t, healthy, statestore.Options{CompactAt: 1})
	save(t, s, "a=1 b=2")
	must(t, statestore.Compact(s))
	for i := range 20 {
		save(t, s, fmt.Sprintf("c%d=%d", i, i))
	}
	must(t, s.Close()) // so that the length of the journal is known
	at := func(dir, name string) string { return filepath.Join(dir, name) }
	overwrite := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			content, err := os.ReadFile(at(dir, name))
			must(t, err)
			must(t, os.WriteFile(at(dir, name), change(content), 0o600))
		}
	}
	half := func(b []byte) []byte { return b[:len(b)/2] }
	flip := func(n int) func([]byte) []byte {
		return func(b []byte) []byte { b[n] ^= 0x10; return b }
	}
	text := func([]byte) []byte { return []byte("This is no state.\n") }
	nothing := func([]byte) []byte { return nil }
	remove := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				must(t, os.Remove(at(dir, name)))
			}
		}
	}
	for what, tt := range map[string]struct {
		do     func(*testing.T, string)
		says   string
		least  int    // keys that can still be read
		broken string // the file that is set aside
	}{
		"snapshot: text":            {overwrite("snapshot", text), "snapshot: the file does not begin", 20, "snapshot"},
		"snapshot: empty":           {overwrite("snapshot", nothing), "snapshot: the file does not begin", 20, "snapshot"},
		"snapshot: half":            {overwrite("snapshot", half), "snapshot: ", 20, "snapshot"},
		"snapshot: one bit":         {overwrite("snapshot", flip(45)), "snapshot: ", 20, "snapshot"},
		"snapshot: generation":      {overwrite("snapshot", flip(16)), "journal.18: file does not exist", 2, ""},
		"snapshot: removed":         {remove("snapshot"), "snapshot: file does not exist", 20, ""},
		"journal: text":             {overwrite("journal.2", text), "journal.2: the file does not begin", 2, "journal.2"},
		"journal: empty":            {overwrite("journal.2", nothing), "journal.2: the file does not begin", 2, "journal.2"},
		"journal: half":             {overwrite("journal.2", half), "journal.2: ", 8, "journal.2"},
		"journal: one bit":          {overwrite("journal.2", flip(100)), "journal.2: a record is damaged at byte ", 4, "journal.2"},
		"journal: zeros at the end": {overwrite("journal.2", func(b []byte) []byte { clear(b[200:]); return b }), "journal.2: ", 8, "journal.2"},
		"journal: removed":          {remove("journal.2"), "journal.2: file does not exist", 2, ""},
		"all but the mark removed":  {remove("snapshot", "journal.2"), "journal.1: file does not exist", 0, ""},
		"mark removed":              {remove("complete"), "could not be written", 22, ""},
	} {
		t.Run(what, func(t *testing.T) {
			dir := killed(t, healthy)
			tt.do(t, dir)
			for range 2 { // also after a kill before Renew
				var log logbook
				after := open(t, dir, log.options())
				if err := after.Stale(); err == nil || what != "again" && !strings.Contains(err.Error(), tt.says) && !errors.Is(err, statestore.ErrStale) {
					t.Errorf("stale: %v, want %q", err, tt.says)
				}
				if !strings.Contains(log.String(), `level=WARN msg="state of the earlier run is stale"`) || !strings.Contains(log.String(), `affects="the test"`) {
					t.Errorf("the log says\n%s", &log)
				}
				if got := remembered(after); len(got) < tt.least {
					t.Errorf("remembered %v, want at least %d", got, tt.least)
				}
				save(t, after, "new=1")
				must(t, after.Close())
			}
			if tt.broken != "" && !exists(at(dir, tt.broken+".broken")) {
				t.Error("no file is set aside")
			}
			after := open(t, dir, statestore.Options{})
			must(t, after.Renew())
			again := open(t, killed(t, dir), statestore.Options{})
			if got := remembered(again); again.Stale() != nil || got["new"] != "1" {
				t.Errorf("after Renew: stale %v, remembered %v", again.Stale(), got)
			}
		})
	}
	t.Run("all removed", func(t *testing.T) {
		var log logbook
		if fresh := open(t, t.TempDir(), log.options()); fresh.Stale() != nil || !strings.Contains(log.String(), "no state of an earlier run") {
			t.Errorf("stale %v, the log says\n%s", fresh.Stale(), &log)
		}
	})
}

// soon returns the error of do, which must not block for ever.
func soon(t *testing.T, do func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(testkit.Patience):
		t.Fatal("it blocks")
		return nil
	}
}

// A pipe in the place of a file is an error that names it. To open it must not block: nobody may ever write into it.
func TestPipes(t *testing.T) {
	healthy := filepath.Join(t.TempDir(), "state")
	s := open(t, healthy, statestore.Options{CompactAt: 1})
	save(t, s, "a=1 b=2")
	must(t, statestore.Compact(s))
	save(t, s, "c=3")
	must(t, s.Close())
	for _, name := range []string{"snapshot", "journal.2", "complete"} {
		dir := killed(t, healthy)
		must(t, errors.Join(os.Remove(filepath.Join(dir, name)), unix.Mkfifo(filepath.Join(dir, name), 0o600)))
		err := soon(t, func() error {
			_, err := statestore.Open(dir, statestore.Options{Log: slog.New(slog.DiscardHandler)})
			return err
		})
		if !errors.Is(err, plainfile.ErrNoFile) || !strings.Contains(err.Error(), filepath.Join(dir, name)+" is a pipe") {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := killed(t, healthy)
	after := open(t, dir, statestore.Options{})
	old := filepath.Join(filepath.Dir(dir), "old.db")
	must(t, unix.Mkfifo(old, 0o600))
	if err := soon(t, func() error { return after.TakeOver(old) }); err != nil || !exists(old+".broken") {
		t.Errorf("a file of an earlier version: %v; it is not set aside", err)
	}
}

// disk is a folder on a disk of its own, in memory.
func disk(t *testing.T, size string) string {
	t.Helper()
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, size))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// While a disk is full, changes are kept and the store is marked as stale, before Save
// returns. Record refuses. When there is room again, all is written and nothing is stale.
func TestAFullDisk(t *testing.T) {
	disk := disk(t, "size=4m")
	synctest.Test(t, func(t *testing.T) { fullDisk(t, disk) })
}

func fullDisk(t *testing.T, disk string) {
	dir := filepath.Join(disk, "state")
	var log logbook
	s := open(t, dir, log.options())
	save(t, s, "a=1 b=old gone=1")
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	save(t, s, "reserved=1")
	if after := open(t, killed(t, dir), statestore.Options{}); after.Stale() != nil || remembered(after)["reserved"] != "1" {
		t.Errorf("what was reserved is not used: stale %v", after.Stale())
	}
	large := map[string][]byte{"large": make([]byte, 2<<20)}
	if err := s.Record(maps.All(large)); !errors.Is(err, unix.ENOSPC) || !exists(filepath.Join(dir, "complete")) {
		t.Errorf("recorded on a full disk: %v", err)
	}
	must(t, s.Save(maps.All(large)))
	save(t, s, "b=new gone=")
	after := open(t, killed(t, dir), statestore.Options{})
	if after.Stale() == nil || remembered(after)["b"] != "old" {
		t.Errorf("stale %v, remembered %v", after.Stale(), remembered(after)["b"])
	}
	if err := s.Record(maps.All(changes("c=3"))); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("recorded while other changes wait: %v", err)
	}
	if n := strings.Count(log.String(), "cannot be written"); n != 1 {
		t.Errorf("reported %d times:\n%s", n, &log)
	}
	if got := remembered(s); got["b"] != "new" || got["gone"] != "" || got["c"] != "" {
		t.Errorf("what is kept in memory is not remembered: b=%q gone=%q c=%q", got["b"], got["gone"], got["c"])
	}
	must(t, os.Remove(ballast))
	runUntil(t, s, func() bool { return strings.Contains(log.String(), "written again") }, "d=4")
	after = open(t, killed(t, dir), statestore.Options{})
	if got := remembered(after); after.Stale() != nil || got["b"] != "new" || got["gone"] != "" || got["d"] != "4" || len(got["large"]) != 2<<20 {
		t.Errorf("stale %v, remembered b=%q gone=%q d=%q", after.Stale(), got["b"], got["gone"], got["d"])
	}
	must(t, s.Close())
}

// A disk that refuses changes and the removal of the mark, as one that has turned read-only, is not trusted when it is
// repaired after the end of the program.
func TestADiskThatRefusesTheMark(t *testing.T) {
	disk, aside := disk(t, "size=4m"), t.TempDir()
	dir, opts := filepath.Join(disk, "state"), statestore.Options{Aside: aside}
	s := open(t, dir, opts)
	save(t, s, "a=1 gone=1")
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	mark := filepath.Join(dir, "complete")
	must(t, unix.Mount(mark, mark, "", unix.MS_BIND, "")) // a mount point cannot be removed
	must(t, s.Save(maps.All(map[string][]byte{"gone": nil, "large": make([]byte, 2<<20)})))
	if err := s.Close(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("closed: %v", err)
	}
	must(t, unix.Unmount(mark, 0))
	must(t, os.Remove(ballast))
	if !exists(mark) {
		t.Error("the mark was removed")
	}
	after := open(t, dir, opts)
	if !errors.Is(after.Stale(), statestore.ErrStale) || exists(mark) {
		t.Errorf("the repaired disk is stale: %v; marked as complete: %t", after.Stale(), exists(mark))
	}
	must(t, after.Renew())
	must(t, after.Close())
	if again := open(t, dir, opts); again.Stale() != nil {
		t.Errorf("after it was renewed, it is stale: %v", again.Stale())
	}
}

// Who may write in the folder could have the program overwrite what only it can.
func TestFoldersOfOthers(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"others may write":    func(dir string) error { return os.Chmod(dir, 0o777) },
		"it is somebody's":    func(dir string) error { return os.Chown(dir, 1234, 0) },
		"a link for a file":   func(dir string) error { return os.Symlink("/dev/null", filepath.Join(dir, "snapshot")) },
		"a link for the mark": func(dir string) error { return os.Symlink("/dev/null", filepath.Join(dir, "complete")) },
	} {
		dir := t.TempDir()
		if err := spoil(dir); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
			continue // a user who is not root cannot give files away
		} else if err != nil {
			t.Fatal(err)
		}
		_, err := statestore.Open(dir, statestore.Options{Log: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, plainfile.ErrForeign) && !errors.Is(err, plainfile.ErrNoFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTakingOver reads what earlier versions have left.
func TestTakingOver(t *testing.T) {
	make := func(t *testing.T, path string, content map[string]string) {
		db, err := bbolt.Open(path, 0o600, nil)
		must(t, err)
		must(t, db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("applied"))
			for key, value := range content {
				err = errors.Join(err, b.Put([]byte(key), []byte(value)))
			}
			return err
		}))
		must(t, db.Close())
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "applied.db")
	s := open(t, filepath.Join(dir, "applied"), statestore.Options{})
	must(t, s.TakeOver(path))
	save(t, s, "a=0 z=0") // by a version that was followed by an earlier one
	make(t, path, map[string]string{"a": "1", "b": ""})
	must(t, s.TakeOver(path))
	if got := remembered(s); !maps.Equal(got, map[string]string{"a": "1", "b": ""}) || s.Stale() != nil {
		t.Errorf("remembered %q, stale %v", got, s.Stale())
	}
	if exists(path) {
		t.Error("the file is still there")
	}
	must(t, os.WriteFile(path, []byte("This is no database."), 0o600))
	must(t, s.TakeOver(path))
	if s.Stale() == nil || !exists(path+".broken") || len(remembered(s)) != 2 {
		t.Errorf("a damaged file: stale %v", s.Stale())
	}
	make(t, path, map[string]string{"c": "3"})
	must(t, s.TakeOver(path))
	if s.Stale() != nil {
		t.Errorf("still stale: %v", s.Stale())
	}
	must(t, s.Close())
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	for _, content := range []string{"one", "another"} {
		must(t, statestore.WriteFile(path, []byte(content)))
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := statestore.WriteFile(filepath.Join(path, "below"), nil); err == nil {
		t.Error("written below a file")
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
