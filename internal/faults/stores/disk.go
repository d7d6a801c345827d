package stores

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

// smallDisk returns a folder with a file system of 2 MB. The test needs a namespace of its
// own for that mount.
func smallDisk(t testing.TB) (dir string) {
	t.Helper()
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
