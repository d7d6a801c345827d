package scratch

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
)

// AddNetns creates a named network namespace in /run/netns, like `ip netns add`.
func AddNetns(name string) error {
	return onOwnThread(func() error {
		ns, err := netns.NewNamed(name)
		if err != nil {
			return fmt.Errorf("making network namespace %s: %w", name, err)
		}
		return ns.Close()
	})
}

// DelNetns removes the name, like `ip netns del`. The namespace exists until no
// process or descriptor uses it.
func DelNetns(name string) error {
	if err := netns.DeleteNamed(name); err != nil {
		return fmt.Errorf("deleting network namespace %s: %w", name, err)
	}
	return nil
}

// InNetns calls do on a thread in the named network namespace. Processes that do
// starts inherit the namespace.
func InNetns(name string, do func() error) error {
	return onOwnThread(func() error {
		ns, err := netns.GetFromName(name)
		if err != nil {
			return fmt.Errorf("network namespace %s: %w", name, err)
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("entering network namespace %s: %w", name, err)
		}
		return do()
	})
}

// onOwnThread calls do on a locked thread, because namespaces belong to threads. If
// the thread cannot return to its namespace, it ends with the goroutine, so that no
// other goroutine runs in the wrong one.
func onOwnThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := netns.Get()
		if err == nil {
			defer home.Close()
			err = do()
		}
		if netns.Set(home) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}
