package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/keyplane/keyplane/internal/plainfile"
)

// What lies in a folder may be anything. Only regular files in it are read; links within it are followed, as
// Kubernetes makes them.
func TestReadIn(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	outside := filepath.Join(t.TempDir(), "secret")
	for _, err := range []error{
		os.WriteFile(outside, []byte("secret"), 0o600), os.Mkdir(in("..data"), 0o700), os.WriteFile(in("..data/a.yaml"), []byte("a"), 0o600),
		os.Symlink("..data/a.yaml", in("a.yaml")), os.WriteFile(in("b.yaml"), []byte("b"), 0o600), os.Symlink(outside, in("link.yaml")),
		syscall.Mkfifo(in("pipe.yaml"), 0o600), os.Symlink("/dev/zero", in("zero.yaml")), os.Symlink("nothing", in("gone.yaml")), os.Mkdir(in("dir.yaml"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]any{
		"a.yaml": "a", "b.yaml": "b", "link.yaml": ErrOutside, "pipe.yaml": plainfile.ErrNoFile, "zero.yaml": plainfile.ErrNoFile,
		"gone.yaml": os.ErrNotExist, "dir.yaml": plainfile.ErrNoFile,
	} {
		text, err := ReadIn(dir, name)
		if wanted, fails := want.(error); fails {
			if !errors.Is(err, wanted) || text != nil || !strings.Contains(err.Error(), in(name)) {
				t.Errorf("%s: %q, %v; expected an error with its path: %v", name, text, err, wanted)
			}
			continue
		}
		if err != nil || string(text) != want {
			t.Errorf("%s: %q, %v; expected %q", name, text, err, want)
		}
	}
}

// A file that has no end is refused.
func TestEndless(t *testing.T) {
	if text, err := Read("/dev/zero"); !errors.Is(err, ErrLarge) || text != nil {
		t.Errorf("/dev/zero: %d bytes, %v; expected %v", len(text), err, ErrLarge)
	}
}
