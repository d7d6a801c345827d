package filedb

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/testkit"
)

// What is no regular file is not opened at all, even if it comes after the walk: to open a device may
// have effects.
func TestOtherKindsAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	pipe, link, file := filepath.Join(dir, "pipe.json"), filepath.Join(dir, "link.json"), filepath.Join(dir, "file.json")
	err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Symlink(pipe, link), os.WriteFile(file, []byte("{}"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, follow := range []bool{false, true} {
		for path, opens := range map[string]bool{pipe: false, link: false, file: true} {
			opened := watchOpens(t, path)
			_, err := read(path, Config{Paths: []string{dir}, FollowLinks: follow, MaxFileSize: 1 << 20})
			if opened() != opens || !opens && err == nil {
				t.Errorf("%s was opened: %v, want %v; %v", filepath.Base(path), !opens, opens, err)
			}
		}
	}
}

// watchOpens returns a function that reports whether anybody has opened a file since.
func watchOpens(t *testing.T, path string) func() bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		n, err := unix.Read(fd, make([]byte, 4096))
		return n > 0 && err == nil
	}
}

// A pipe in the place of a folder does not block the walk, which has the lock of the files.
func TestAPipeInsteadOfAFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	listed := make(chan error, 1)
	go func() {
		w := &walk{cfg: Config{MaxEntries: 10}}
		_, err := w.list(t.Context(), folder{path: path, place: &place{path: path}})
		listed <- err
	}()
	select {
	case err := <-listed:
		if !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("listing a pipe: %v", err)
		}
	case <-time.After(testkit.Patience):
		t.Error("listing a pipe waits for somebody who writes into it")
	}
}
