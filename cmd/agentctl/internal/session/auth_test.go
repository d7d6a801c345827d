package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPasswordFromPipe reads name and password from a pipe, as shells make one, and from one into
// which nobody writes. It must not block.
func TestPasswordFromPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings{HTTPAuthFile: pipe}
	if err := s.readAuth(); err == nil || !strings.Contains(err.Error(), "expected one line, USER:PASSWORD") {
		t.Errorf("without a writer: %v", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := writer.WriteString("user:password\n"); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	s = settings{HTTPAuthFile: fmt.Sprint("/dev/fd/", reader.Fd())}
	if err := s.readAuth(); err != nil || s.HTTPAuth != "user:password" {
		t.Errorf("with a writer: %q, %v", s.HTTPAuth, err)
	}
}
