package owner_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/internal/testkit"
)

var quiet = slog.New(slog.DiscardHandler)

func TestFolderHasOneProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "vpp1")
	first, err := owner.OpenFolder(dir, "vpp1", quiet)
	if err != nil {
		t.Fatal(err)
	}
	self := owner.Self("vpp1", first.Installation)
	first.Name(self)
	var taken *owner.TakenError
	if _, err := owner.OpenFolder(dir, "vpp1", quiet); !errors.As(err, &taken) || taken.Holder != self ||
		!strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), first.Installation) {
		t.Fatalf("a second one: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := owner.OpenFolder(dir, "vpp1", quiet)
	if err != nil || again.Installation != first.Installation {
		t.Errorf("after the first: %v, installation %s, want %s", err, again.Installation, first.Installation)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFolderThatIsDamagedOrMissing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "installation"), []byte("ab\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, at := range []string{dir, dir, "", "", filepath.Join(dir, "installation", "below-a-file")} {
		f, err := owner.OpenFolder(at, "vpp1", quiet)
		if err != nil || len(f.Installation) != 16 {
			t.Fatalf("%q: %+v, %v", at, f, err)
		}
		ids[f.Installation] = true
		f.Name(owner.Self("vpp1", f.Installation))
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(ids) != 4 { // the damaged id was replaced, and kept from then on
		t.Errorf("%d ids, want 4", len(ids))
	}
}

// Pipes in the places of the files are replaced or reported. To read them must not block: nobody may ever write into them.
func TestFolderWithPipes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"installation", "agent.lock"} {
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opened := make(chan *owner.Folder, 1)
	go func() {
		f, err := owner.OpenFolder(dir, "vpp1", quiet)
		if err != nil {
			t.Error(err)
		}
		opened <- f
	}()
	select {
	case f := <-opened:
		text, err := os.ReadFile(filepath.Join(dir, "installation"))
		if err != nil || strings.TrimSpace(string(text)) != f.Installation {
			t.Errorf("the ID %s is saved as %q, %v", f.Installation, text, err)
		}
		f.Name(owner.Self("vpp1", f.Installation))
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("it blocks")
	}
}

func TestGuardHasOneProcess(t *testing.T) {
	label := strings.Repeat("long", 40) + owner.NewID() // no other test's
	self := owner.Self(label, "i1")
	first, err := owner.Listen(t.Context(), self, quiet)
	if err != nil {
		t.Fatal(err)
	}
	var taken *owner.TakenError
	if _, err := owner.Listen(t.Context(), owner.Self(label, "i2"), quiet); !errors.As(err, &taken) || taken.Holder.PID != os.Getpid() {
		t.Fatalf("beside one that starts: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- first.Run(t.Context()) }()
	if _, err := owner.Listen(t.Context(), owner.Self(label, "i2"), quiet); !errors.As(err, &taken) || taken.Holder != self {
		t.Fatalf("beside one that runs: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	second, err := owner.Listen(t.Context(), self, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}
