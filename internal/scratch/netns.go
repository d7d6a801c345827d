package scratch

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
)

// AddNetns makes a network namespace named under /run/netns, as `ip netns add`
// does.
func AddNetns(name string) error {
	return onOwnThread(func() error {
		ns, err := netns.NewNamed(name)
		if err != nil {
			return fmt.Errorf("making network namespace %s: %w", name, err)
		}
		return ns.Close()
	})
}

// DelNetns takes the name away, as `ip netns del` does. The namespace itself
// goes when nothing is in it any more.
func DelNetns(name string) error {
	if err := netns.DeleteNamed(name); err != nil {
		return fmt.Errorf("deleting network namespace %s: %w", name, err)
	}
	return nil
}

// InNetns calls do on a thread that is in the network namespace with the given
// name. Processes that do starts are in it too.
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

// onOwnThread calls do on a thread that no other goroutine runs on meanwhile,
// and that ends there unless it is back where it was.
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
