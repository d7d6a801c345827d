package proto

import (
	"io/fs"
	"os"
	"os/exec"
	"testing"
)

func TestGeneratedCodeIsThatOfTheSources(t *testing.T) {
	open(t, "ligato")
	cmd := exec.CommandContext(t.Context(), "go", "-C", "../tools", "run", "./protogen", "-check", "../proto")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// open opens every file below dir, so that go test knows what its cached result depends on.
func open(t *testing.T, dir string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}
