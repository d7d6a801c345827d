package plainfile_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/plainfile"
)

// What is no regular file is refused at once, for reading and for writing.
func TestOtherKinds(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", at("socket"))
	if err := errors.Join(err, unix.Mkfifo(at("pipe"), 0o600), os.Symlink(at("pipe"), at("link")), os.Mkdir(at("folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for path, want := range map[string]string{
		at("pipe"): "a pipe", at("link"): "a pipe", at("folder"): "a folder", at("socket"): "a socket", "/dev/null": "a device",
	} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_TRUNC} {
			f, err := plainfile.OpenFile(path, flag, 0o600)
			if f != nil || !errors.Is(err, plainfile.ErrNoFile) || err.Error() != path+" is "+want+": expected a regular file" {
				t.Errorf("%s with flags %#x: %v", path, flag, err)
			}
		}
		if text, err := plainfile.Read(path); len(text) > 0 || !errors.Is(err, plainfile.ErrNoFile) {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
}

// What was found is opened, even if something else lies at the path meanwhile.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := plainfile.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if n, err := at.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes were read from what was not opened", n)
	}
	f, err := plainfile.Reopen(at, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); string(text) != "text" || err != nil || f.Name() != path {
		t.Errorf("%s: %q, %v", f.Name(), text, err)
	}
	if _, err := plainfile.Find(path + "/no"); !errors.Is(err, unix.ENOTDIR) || !strings.HasPrefix(err.Error(), "open "+path+"/no: ") {
		t.Errorf("a place that cannot be: %v", err)
	}
}

// A file is created where a link leads, but not for ever.
func TestLinksToNothing(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.Symlink("b", at("a")), os.Symlink(at("c"), at("b")), os.Symlink("loop", at("loop")))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f, err := plainfile.OpenFile(at("a"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if info, err := os.Lstat(at("c")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("no file where the links lead: %v", err)
	}
	if _, err := plainfile.OpenFile(at("loop"), os.O_CREATE|os.O_RDWR, 0o600); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
}

// Regular files are those of package os.
func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := plainfile.Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	text := strings.Repeat("text", 1<<18)
	for range 2 {
		f, err := plainfile.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, err := plainfile.Read(path); string(got) != text || err != nil {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(text))
	}
}
