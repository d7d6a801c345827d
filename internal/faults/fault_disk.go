package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

// diskFaults are what happens to the disk that a store of the agent's own is on.
func diskFaults() []Fault {
	return []Fault{{Name: "disk full, and free again", Needs: SmallDisk, Do: diskFull}}
}

// smallDisk is a folder on a disk of its own.
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

// diskFull fills the disk. What cannot be written then is refused, and what was there
// before stays.
func diskFull(r *Run) {
	ballast := filepath.Join(r.Store.Dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); err == nil {
		r.Fatal("the disk takes more than it should")
	}
	refused := 0
	for i := range 20 {
		large := history.Change{Key: r.name(i), Text: r.text() + strings.Repeat("x", 100_000)}
		begun := time.Now()
		if err := r.Store.Write(r.ctx, large); err != nil {
			refused++
			continue
		}
		r.wrote(begun, large)
	}
	if refused == 0 {
		r.Error("a full disk took everything")
	}
	r.await("what the full disk took")
	if err := os.Remove(ballast); err != nil {
		r.Fatal(err)
	}
	r.heal()
	r.churn(30)
}
