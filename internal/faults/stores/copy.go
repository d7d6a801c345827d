package stores

import (
	"os"
	"testing"
)

// copyTree copies a folder to a path that does not exist, or to an empty folder.
func copyTree(t testing.TB, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
