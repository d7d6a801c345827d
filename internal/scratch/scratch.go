// Package scratch gives a program a place where it is root of a network of its
// own, so that nothing it does can reach the host's: a new network namespace
// with its loopback up, and a new mount namespace with an empty /run and /var/lib, so
// that named namespaces and what programs keep are its own too. An ordinary user gets them inside a user
// namespace. When the last process inside ends, the kernel takes all of it away.
//
// A process is started inside by its SysProcAttr, [Attr], and calls [Enter]
// before anything else. A test package does both with [Main]:
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
)

// ErrDenied says that this machine does not let the caller have namespaces.
var ErrDenied = errors.New("new namespaces are denied")

// Attr makes a process start in new network and mount namespaces and, where the
// caller may not make those, in a user namespace in which it is root.
func Attr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	if mayAdminister() {
		return attr
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	return attr
}

// mayAdminister tells whether this process has CAP_SYS_ADMIN; user 0 of a
// container often has not.
func mayAdminister() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// Enter makes the namespaces that the process was started in ready: no mount
// reaches the host, /run and /var/lib are empty, the loopback interface is up. Its error is
// ErrDenied where a security policy has taken the rights inside away.
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

func denied(what string, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%s: %w: %w", what, ErrDenied, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// inside marks the environment of a process that Main has started.
const inside = "KEYPLANE_SCRATCH"

// Inside tells whether this process runs in a scratch place that Main made.
func Inside() bool { return os.Getenv(inside) != "" }

// Main runs the tests of a package in a scratch place: it starts the test
// program once more, there, and returns its exit code. Where the machine does
// not allow that, the tests run where they are and Inside is false.
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
