package testkit

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// serversModule is the module, apart from the product's, that pins the servers.
// One whose dependencies fight with those of the others has a module of its own,
// in a folder below that has its name.
const serversModule = "internal/testservers"

// Tool returns the path of a program that internal/testservers pins, built from
// its package at the first use on this machine: Go is all it needs. The program
// is kept under .cache of the checkout, by the versions it was built from; test
// programs that need it at the same time build it once.
func Tool(t testing.TB, name, pkg string) string {
	t.Helper()
	root := repoRoot(t)
	dir := filepath.Join(root, ".cache", "testservers")
	module := moduleOf(root, name)
	path := filepath.Join(dir, name+"-"+versionsHash(t, module))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("directory for test servers: %v", err)
	}
	defer lockFile(t, filepath.Join(dir, name+".lock"))()
	if _, err := os.Stat(path); err == nil {
		return path
	}
	t.Logf("building %s, which takes a minute or so the first time", pkg)
	cmd := exec.Command("go", "build", "-o", path+".new", pkg)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		Need(t, name+", which could not be built: "+string(out), false)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatalf("keeping the built %s: %v", name, err)
	}
	return path
}

// moduleOf is the folder of the module that pins a program.
func moduleOf(root, name string) string {
	own := filepath.Join(root, serversModule, name)
	if _, err := os.Stat(filepath.Join(own, "go.mod")); err == nil {
		return own
	}
	return filepath.Join(root, serversModule)
}

// repoRoot is the checkout that the test runs in.
func repoRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("working directory: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, serversModule, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatalf("no %s above the working directory", serversModule)
		}
		dir = up
	}
}

// versionsHash names what a built program depends on: the pinned versions and Go's.
func versionsHash(t testing.TB, module string) string {
	t.Helper()
	sum, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		t.Fatalf("versions of the test servers: %v", err)
	}
	hash := sha256.Sum256(append(sum, runtime.Version()...))
	return hex.EncodeToString(hash[:6])
}

// lockFile waits for the lock on path and returns what releases it.
func lockFile(t testing.TB, path string) (unlock func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatalf("lock of the test servers: %v", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatalf("locking %s: %v", path, err)
	}
	return func() { f.Close() }
}
