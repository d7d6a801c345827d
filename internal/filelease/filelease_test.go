package filelease

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	writer, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	take := func(want Writer) {
		t.Helper()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := Take(f); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	take(Writing)
	if _, err := writer.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	take(Writing)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	take(Closed)
}

func TestDecide(t *testing.T) {
	tests := []struct {
		name       string
		lease      error
		fileSystem uint32
		want       Writer
	}{
		{"local, no writer", nil, unix.EXT4_SUPER_MAGIC, Closed},
		{"local, a writer", unix.EAGAIN, unix.EXT4_SUPER_MAGIC, Writing},
		{"local, somebody else's file", unix.EACCES, unix.EXT4_SUPER_MAGIC, Unknown},
		{"local, no leases", unix.EINVAL, unix.TMPFS_MAGIC, Unknown},
		{"NFS, delegated", nil, unix.NFS_SUPER_MAGIC, Closed},
		{"NFS, not delegated", unix.EAGAIN, unix.NFS_SUPER_MAGIC, Unknown},
		{"NFS 3", unix.EINVAL, unix.NFS_SUPER_MAGIC, Unknown},
		{"SMB, no oplock", unix.EAGAIN, unix.SMB2_SUPER_MAGIC, Unknown},
		{"CIFS, no oplock", unix.EAGAIN, unix.CIFS_SUPER_MAGIC, Unknown},
		{"FUSE, a writer on this host", unix.EAGAIN, unix.FUSE_SUPER_MAGIC, Writing},
		{"FUSE, no writer on this host", nil, unix.FUSE_SUPER_MAGIC, Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := decide(tt.lease, sharingOf(tt.fileSystem)); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
