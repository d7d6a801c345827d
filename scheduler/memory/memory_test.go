package memory_test

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
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/memory"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

var _ scheduler.Memory = (*memory.File)(nil)

// A journal is a log that a test can wait for.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func newJournal() *journal { return &journal{news: make(chan struct{}, 100)} }

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.news <- struct{}{}
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) log() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func (j *journal) await(t *testing.T, words string) {
	t.Helper()
	for limit := time.After(30 * time.Second); !strings.Contains(j.String(), words); {
		select {
		case <-j.news:
		case <-limit:
			t.Fatalf("the log never says %q:\n%s", words, j)
		}
	}
}

func open(t *testing.T, path string, log *slog.Logger) *memory.File {
	t.Helper()
	f, err := memory.Open(path, log)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// reopened is what is in the file after it was closed.
func reopened(t *testing.T, f *memory.File, path string) map[string][]byte {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, nil)
	defer again.Close()
	return maps.Collect(again.Load())
}

func save(t *testing.T, f *memory.File, changes map[string][]byte) {
	t.Helper()
	if err := f.Save(changes); err != nil {
		t.Fatal(err)
	}
}

func TestFileRemembers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "applied.db")
	f := open(t, path, nil)
	save(t, f, map[string][]byte{"a": []byte("1"), "b": []byte("2")})
	save(t, f, map[string][]byte{"a": nil, "c": {}})
	if _, err := memory.Open(path, nil); !errors.Is(err, memory.ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	got := reopened(t, f, path)
	if len(got) != 2 || string(got["b"]) != "2" || got["c"] == nil {
		t.Errorf("remembered %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A key that the file cannot hold is told of, and keeps no other from being written.
func TestAKeyThatIsTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "applied.db")
	log := newJournal()
	f := open(t, path, log.log())
	longest := strings.Repeat("x", bbolt.MaxKeySize)
	save(t, f, map[string][]byte{"a": {}, longest: {}, longest + "x": {}, "z": {}})
	if got := reopened(t, f, path); len(got) != 3 || got["z"] == nil || got[longest] == nil {
		t.Errorf("%d keys are remembered", len(got))
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log)
	}
}

// What Run has written is there when the process is killed.
func TestRunWritesBehind(t *testing.T) {
	dir := t.TempDir()
	f := open(t, filepath.Join(dir, "applied.db"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	save(t, f, map[string][]byte{"a": []byte("1")})
	for deadline := time.Now().Add(30 * time.Second); len(maps.Collect(f.Load())) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("never written")
		}
	}
	cancel()
	if err := errors.Join(<-ended, f.Close()); err != nil {
		t.Error(err)
	}
}

func TestABrokenFileIsSetAside(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "applied.db")
	f := open(t, whole, nil)
	changes := map[string][]byte{}
	for i := range 2000 {
		changes[fmt.Sprintf("key %d", i)] = bytes.Repeat([]byte("x"), 100)
	}
	save(t, f, changes)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	scribbled := bytes.Clone(good)
	for i := 4 * os.Getpagesize(); i < len(scribbled); i++ {
		scribbled[i] = byte(i * 7)
	}
	for what, content := range map[string][]byte{
		"text": []byte("this is no such file\n"), "cut": good[:len(good)/2], "scribbled over": scribbled,
		"zeros": make([]byte, len(good)), "noise": bytes.Repeat([]byte{0xed, 0x0c, 0xda, 0xed}, 9999),
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "applied.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			log := newJournal()
			f := open(t, path, log.log())
			save(t, f, map[string][]byte{"a": []byte("1")})
			if got := reopened(t, f, path); len(got) != 1 {
				t.Errorf("%d keys", len(got))
			}
			if aside, err := os.ReadFile(path + ".broken"); err != nil || !bytes.Equal(aside, content) {
				t.Errorf("set aside: %d bytes, %v", len(aside), err)
			}
			if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), path+".broken") {
				t.Errorf("the log says\n%s", log)
			}
		})
	}
}

// A disk that is full is told of once; what could not be written is when there is room.
func TestAFullDisk(t *testing.T) {
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	path, ballast := filepath.Join(dir, "applied.db"), filepath.Join(dir, "ballast")
	log := newJournal()
	f := open(t, path, log.log())
	if err := os.WriteFile(ballast, make([]byte, 900<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	save(t, f, map[string][]byte{"a": make([]byte, 200<<10), "b": []byte("old")})
	log.await(t, "cannot be written")
	save(t, f, map[string][]byte{"b": []byte("new")})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	log.await(t, "written again")
	if n := strings.Count(log.String(), "cannot be written"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := reopened(t, f, path); len(got["a"]) != 200<<10 || string(got["b"]) != "new" {
		t.Errorf("%d bytes and %q", len(got["a"]), got["b"])
	}
}
