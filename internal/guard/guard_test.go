package guard_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/guard"
)

func TestRunReturnsTheErrorOrThePanic(t *testing.T) {
	if err := guard.Run(func() error { return nil }); err != nil {
		t.Errorf("got %v", err)
	}
	if err := guard.Run(func() error { return os.ErrExist }); err != os.ErrExist || guard.Stack(err) != "" {
		t.Errorf("got %v with stack %q", err, guard.Stack(err))
	}
	err := guard.Run(func() error { panic("index 3 of 2") })
	var p *guard.Panic
	if !errors.Is(err, guard.ErrPanic) || !errors.As(err, &p) || p.BadAddress() {
		t.Fatalf("got %v", err)
	}
	if want := "internal error of the agent: panic: index 3 of 2"; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if !strings.Contains(guard.Stack(err), "guard_test.go") {
		t.Errorf("the stack lacks the place of the panic:\n%s", guard.Stack(err))
	}
}

func TestMappedSurvivesATruncatedFile(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "mapped"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const size = 1 << 16
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	if err := file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	sum := byte(0)
	err = guard.Mapped(func() error {
		sum += memory[size-1]
		return nil
	})
	var p *guard.Panic
	if !errors.As(err, &p) || !p.BadAddress() {
		t.Errorf("got %v, sum %d", err, sum)
	}
}
