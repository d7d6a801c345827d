package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// within calls f on a thread inside the namespace of file. This is the only way to
// /proc/sys/net and to new sockets of a namespace: both belong to the namespace of the
// thread that opens them. If the thread cannot return to its own namespace, it stays
// locked and ends with its goroutine, so that no other goroutine runs in the wrong
// namespace. Entering a namespace needs CAP_SYS_ADMIN, even if the thread is in it already.
// A thread that is there does not enter, so the agent's own namespace needs no such right.
func within(file *os.File, f func() error) error {
	return onThread(func(home *os.File) (moved bool, err error) {
		if same(file, home) {
			return false, nil
		}
		err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
		return err == nil, err
	}, f)
}

// inNew is within for a new namespace.
func inNew(f func() error) error {
	return onThread(func(*os.File) (moved bool, err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return false, fmt.Errorf("unshare: %w", err)
		}
		return true, nil
	}, f)
}

// onThread calls enter and f on one thread. enter may move the thread to another namespace.
func onThread(enter func(home *os.File) (moved bool, err error), f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		defer home.Close()
		moved, err := enter(home)
		if err == nil {
			err = f()
		}
		if !moved || unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// same reports whether both files are the same namespace.
func same(a, b *os.File) bool {
	var one, other unix.Stat_t
	return unix.Fstat(int(a.Fd()), &one) == nil && unix.Fstat(int(b.Fd()), &other) == nil && one.Dev == other.Dev && one.Ino == other.Ino
}

// Sysctl implements Kernel. It reads first: in a container, /proc/sys often cannot be written, and mostly
// need not be.
func (k *real) Sysctl(name, value string) error {
	return within(k.file, func() error {
		path := filepath.Join("/proc/sys/net", name)
		if has, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(has)) == value {
			return nil
		}
		return os.WriteFile(path, []byte(value), 0)
	})
}
