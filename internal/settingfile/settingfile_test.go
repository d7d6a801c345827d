package settingfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPipes has a pipe without a writer, one whose writer is silent, and one with a writer.
func TestPipes(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(fifo); len(text) > 0 || err != nil {
		t.Errorf("without a writer: %q, %v", text, err)
	}
	f, err := Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	writer, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := f.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadAll(f, Most); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("with a silent writer: %v", err)
	}
	if _, err := io.WriteString(writer, "user:password"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writer.Close(), f.SetReadDeadline(time.Time{})); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadAll(f, Most); string(text) != "user:password" || err != nil {
		t.Errorf("with a writer: %q, %v", text, err)
	}
}

// TestErrors reads what is no file, or has no end.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Read(dir); !errors.Is(err, unix.EISDIR) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Read("/dev/zero"); !errors.Is(err, errLarge) || !strings.HasPrefix(err.Error(), "/dev/zero: ") {
		t.Errorf("a device without an end: %v", err)
	}
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(path); string(text) != "text" || err != nil {
		t.Errorf("a file: %q, %v", text, err)
	}
}
