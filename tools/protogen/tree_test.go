package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestTreeBecomesWhatIsGenerated(t *testing.T) {
	root := t.TempDir()
	for path, content := range map[string]string{"a/same.pb.go": "same", "a/old.pb.go": "old", "stale.pb.go": "", "a/kept.go": "kept"} {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"a/same.pb.go": "same", "a/old.pb.go": "new", "a/fresh.pb.go": "fresh"}

	changes, err := compare(root, want)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(changes); !slices.Equal(got, []string{"a/fresh.pb.go", "a/old.pb.go", "stale.pb.go"}) {
		t.Errorf("to change: %q", got)
	}
	if err := apply(root, changes); err != nil {
		t.Fatal(err)
	}
	if changes, err := compare(root, want); err != nil || len(changes) != 0 {
		t.Errorf("still to change: %q, %v", names(changes), err)
	}
	if _, err := os.Stat(filepath.Join(root, "a/kept.go")); err != nil {
		t.Error("a file that is not generated is gone")
	}
}

func TestGenerateSaysWhereAFileIsWrong(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "bad.proto"), []byte("syntax = \"proto3\";\nmessage M { strin a = 1; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := generate(t.Context(), root)
	if want := "bad.proto:2:13: field M.a: unknown type strin"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestGenerateNeedsFiles(t *testing.T) {
	if want, err := generate(t.Context(), t.TempDir()); err == nil {
		t.Errorf("generated %v from nothing", want)
	}
}
