package faults

import (
	"os"
	"testing"
)

// copyTree copies a folder to where there is none, or an empty one.
func copyTree(t testing.TB, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
