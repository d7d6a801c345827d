package kernel

import (
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// within calls f on a thread inside the namespace of file. This is the only way to
// /proc/sys/net and to new sockets of a namespace: both belong to the namespace of the
// thread that opens them. If the thread cannot return to its own namespace, it stays
// locked and ends with its goroutine, so that no other goroutine runs in the wrong
// namespace.
func within(file *os.File, f func() error) error {
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
		err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// Sysctl implements Kernel.
func (k *real) Sysctl(name, value string) error {
	return within(k.file, func() error {
		return os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0)
	})
}
