package filedb_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/connectors/filedb"
)

// TestMountedFile has a single file of another folder mounted in its place, as a container has it. What is written into
// the file is seen at once. A file that is replaced there stays as it was here, and that is told.
func TestMountedFile(t *testing.T) {
	if !inUserNamespace(t, 0) {
		return
	}
	const text = "data: [{key: config/a, value: "
	for _, configured := range []string{"", "/a.yaml"} {
		host, dir := t.TempDir()+"/a.yaml", t.TempDir()
		write(t, host, text+"1}]\n")
		write(t, dir+"/a.yaml", "")
		if err := unix.Mount(host, dir+"/a.yaml", "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir+"/a.yaml", unix.MNT_DETACH) }) // or the folder could not be removed
		m := mirrored(t, newDB(t, filedb.Config{Paths: []string{dir + configured}, Rescan: time.Hour}))
		m.holds(t, "config/a", "1")
		// In place, as an editor with "set backupcopy=yes" or a shell does it.
		if err := os.WriteFile(host, []byte(text+"2}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		m.holds(t, "config/a", "2")
		write(t, host+".new", text+"3}]\n")
		if err := os.Rename(host+".new", host); err != nil {
			t.Fatal(err)
		}
		m.until(t, "the problem", func() bool {
			last := m.batches[len(m.batches)-1]
			return len(last.Problems) == 1 && strings.Contains(last.Problems[0].Error(), "mounted as a single file")
		})
		m.holds(t, "config/a", "2")
	}
}
