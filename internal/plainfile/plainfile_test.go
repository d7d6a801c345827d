package plainfile_test

import (
	"errors"
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
