package kernel

import (
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// within calls f on a thread that is in the namespace of file. The files under
// /proc/sys/net and new sockets show the namespace of the thread that opens them,
// and there is no other way to them. A thread that cannot go back where it came
// from ends with its goroutine.
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
		if err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err == nil {
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
