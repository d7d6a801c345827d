package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Tool returns the path of a program that `make servers` has built: etcd, etcdctl or
// consul. Tests never build one, since that may exceed the time limit of a test.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(repoRoot(t), ".cache", "testservers", name)
	_, err := os.Stat(path)
	Need(t, name+", which `make servers` builds", err == nil)
	return path
}

// repoRoot is the checkout that the test runs in.
func repoRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("working directory: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "internal", "testservers", "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("the working directory is outside the checkout")
		}
		dir = up
	}
}
