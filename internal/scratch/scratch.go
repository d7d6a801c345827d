// Package scratch runs a program as root of a network of its own, so that it cannot
// affect the host: a new network namespace with its loopback up, and a new mount
// namespace with an empty /run and /var/lib for named namespaces and saved state.
// Users other than root get them within a user namespace. The kernel removes
// everything when the last process inside ends.
//
// A process is started inside with the SysProcAttr of [Attr], and calls [Enter]
// first. A test package does both with [Main]:
//
//	func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }
package scratch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/capability"
)

// ErrDenied reports that this machine does not allow new namespaces.
var ErrDenied = errors.New("new namespaces are denied")

// Attr returns the attributes that start a process in new network and mount
// namespaces. Without CAP_SYS_ADMIN they add a user namespace in which the process
// is root.
func Attr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	if capability.Has(unix.CAP_SYS_ADMIN) {
		return attr
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	return attr
}

// Enter prepares the namespaces of this process: mounts do not propagate to the
// host, /run and /var/lib are empty, and the loopback is up. The error is ErrDenied
// if a security policy forbids it.
func Enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return denied("keeping mounts private", err)
	}
	for _, dir := range []string{"/run", "/var/lib"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
			return denied("mounting an empty "+dir, err)
		}
	}
	if err := os.Mkdir("/run/netns", 0o755); err != nil {
		return fmt.Errorf("folder of named namespaces: %w", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return denied("bringing the loopback interface up", err)
	}
	return nil
}

// denied adds ErrDenied to errors about missing permissions, so that callers can
// skip or explain.
func denied(action string, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%s: %w: %w", action, ErrDenied, err)
	}
	return fmt.Errorf("%s: %w", action, err)
}

// inside is the environment variable of processes that Main has started.
const inside = "KEYPLANE_SCRATCH"

// Inside reports whether this process runs in namespaces of Main. Tests that change
// the network require it.
func Inside() bool { return os.Getenv(inside) != "" }

// Main runs the tests of a package in scratch namespaces: it starts the test program
// again, inside, and returns its exit code. If the machine does not allow that, the
// tests run on the host and Inside is false.
func Main(run func() int) int {
	if Inside() {
		if err := Enter(); err != nil {
			fmt.Fprintln(os.Stderr, "no scratch namespaces:", err)
			os.Unsetenv(inside)
		}
		return run()
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = Attr()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "no scratch namespaces:", err)
		return run()
	}
	return exitCode(cmd.Wait(), cmd)
}

// exitCode returns the exit code of the tests. A test program that a signal has
// killed failed.
func exitCode(err error, cmd *exec.Cmd) int {
	if err == nil {
		return 0
	}
	if code := cmd.ProcessState.ExitCode(); code > 0 {
		return code
	}
	fmt.Fprintln(os.Stderr, "tests in scratch namespaces:", err)
	return 1
}
