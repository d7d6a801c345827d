package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/scratch"
)

// insideVerb is the command with which run starts this program again, inside the scratch
// network.
const insideVerb = "become"

// markInside is the environment variable that marks a command as already inside.
const markInside = "FIRST_LIGHT_INSIDE"

// isInside reports whether this process has namespaces of its own.
func isInside() bool { return os.Getenv(markInside) != "" }

// namespaces returns the names of the two namespaces that the example connects.
func namespaces() []string { return []string{"red", "blue"} }

// become prepares the scratch network and replaces this process with the agent.
func become(command []string) error {
	if len(command) == 0 {
		return errUsage
	}
	err := scratch.Enter()
	if errors.Is(err, scratch.ErrDenied) {
		return fmt.Errorf("%w%s", err, remedy)
	}
	if err != nil {
		return err
	}
	for _, name := range namespaces() {
		if err := scratch.AddNetns(name); err != nil {
			return err
		}
	}
	if err := endWithParent(); err != nil {
		return err
	}
	if err := startVPP(); err != nil {
		return err
	}
	return fmt.Errorf("starting %s: %w", command[0], syscall.Exec(command[0], command, os.Environ()))
}

// endWithParent makes the kernel send SIGTERM when first-light ends for any reason. The
// kernel ties this to a thread, not to the process. Only the calling thread remains after
// exec, so it stays locked.
func endWithParent() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return fmt.Errorf("ending with first-light: %w", err)
	}
	return nil
}

const (
	// vppSocket is where vppsim listens by default.
	vppSocket = "/run/vpp/api.sock"
	// The agent waits for it at most vppTimeout, and looks every vppPeriod.
	vppTimeout = time.Minute
	vppPeriod  = 10 * time.Millisecond
)

// startVPP starts the simulated VPP. It ends with the thread that starts it, which becomes
// the agent.
func startVPP() error {
	vpp, err := beside("vppsim")
	if err != nil {
		return err
	}
	cmd := exec.Command(vpp, "-stats", "/run/vpp/stats.sock")
	// Its one line says that it runs. The agent says so, too, by the values that it creates.
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", vpp, err)
	}
	awaitFile(vppSocket)
	return nil
}

// awaitFile waits until the file exists, for a while. The agent starts without it, too, but reports
// each value of VPP as pending then.
func awaitFile(path string) {
	for until := time.Now().Add(vppTimeout); time.Now().Before(until); time.Sleep(vppPeriod) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
}

// enter starts this program again with the same arguments, in the namespaces of the agent.
// The kernel lets only single-threaded programs enter a user namespace, and a Go program
// has many threads. So nsenter does that step (util-linux, part of every Debian) where there is one.
func enter(args []string) error {
	pid, err := running()
	if err != nil {
		return fmt.Errorf("first-light does not run here: start it with make run (%w)", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env := append(os.Environ(), markInside+"=1")
	if !otherUser(pid) {
		if err := join(pid); err != nil {
			return err
		}
		return fmt.Errorf("starting %s: %w", self, syscall.Exec(self, append([]string{self}, args...), env))
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	command := append([]string{nsenter, "--target", strconv.Itoa(pid), "--user", "--preserve-credentials", "--mount", "--net", "--wd", "--", self}, args...)
	return fmt.Errorf("starting %s: %w", nsenter, syscall.Exec(nsenter, command, env))
}

// otherUser reports whether the process has another user namespace than this one.
func otherUser(pid int) bool {
	ours, _ := os.Readlink("/proc/self/ns/user")
	theirs, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/user")
	return ours != theirs
}

// join moves this thread into the network and the mounts of the process, and stays in the same folder. Only
// the calling thread remains after exec, so it stays locked.
func join(pid int) error {
	runtime.LockOSThread()
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	// A thread that shares its folder with others may not change its mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("joining the network of process %d: %w", pid, err)
	}
	for _, kind := range []string{"net", "mnt"} {
		f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/" + kind)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := unix.Setns(int(f.Fd()), 0); err != nil {
			return fmt.Errorf("joining the network of process %d: %w", pid, err)
		}
	}
	return unix.Chdir(folder)
}

// execIn replaces this process with a command in a named namespace. Without a command it is a
// shell. The prompt of a shell begins with the namespace.
func execIn(namespace string, command []string) error {
	if len(command) == 0 {
		command = []string{userShell()}
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	command, env, err := withPrompt(namespace, command, os.Environ())
	if err != nil {
		return err
	}
	return scratch.InNetns(namespace, func() error {
		return fmt.Errorf("starting %s: %w", path, syscall.Exec(path, command, env))
	})
}

// pingFrom sends an echo request from a namespace, and prints the answer.
func pingFrom(out io.Writer, namespace, address string) error {
	return scratch.InNetns(namespace, func() error { return ping(out, address) })
}

// show prints the actual state of the namespaces and of VPP, for machines without
// iproute2.
func show(out io.Writer) error {
	for _, name := range namespaces() {
		fmt.Fprintf(out, "%s:\n", name)
		if err := scratch.Show(out, name); err != nil {
			return err
		}
	}
	return showVPP(out)
}

// showVPP prints the configuration of the simulated VPP.
func showVPP(out io.Writer) error {
	vpp, err := beside("vppsim")
	if err != nil {
		return err
	}
	for _, page := range []string{"interface", "bridge-domain", "l2fib", "ip fib"} {
		cmd := exec.Command(vpp, append([]string{"show"}, strings.Fields(page)...)...)
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("asking the simulated VPP to show %s: %w", page, err)
		}
	}
	return nil
}
