package netns

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file in the place of a namespace is named as such.
func TestFileThatIsNoNamespace(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{Dir: dir})
	if err := os.WriteFile(filepath.Join(dir, "red"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := s.absent("red"), "red is there, but it is no network namespace; remove it, and create it with: ip netns add red"; !strings.HasSuffix(got, want) {
		t.Errorf("it says %q", got)
	}
	if got, want := s.absent("blue"), "create it with: ip netns add blue"; got != want {
		t.Errorf("without a file it says %q", got)
	}
}
