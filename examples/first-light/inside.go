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

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/scratch"
)

// insideVerb is the command that run starts this program with, inside.
const insideVerb = "become"

// markInside tells a command, by the environment, that it is inside already.
const markInside = "FIRST_LIGHT_INSIDE"

func isInside() bool { return os.Getenv(markInside) != "" }

func namespaces() []string { return []string{"red", "blue"} }

// become readies the scratch network and turns this process into the agent.
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

// endWithParent makes the kernel send SIGTERM when first-light ends, however it
// does. It notes that of a thread, not of a process, and what remains after exec
// is the thread that calls it; hence the lock, which outlives this function.
func endWithParent() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return fmt.Errorf("ending with first-light: %w", err)
	}
	return nil
}

// startVPP starts the simulated VPP. It ends with the thread that starts it, which
// becomes the agent's.
func startVPP() error {
	vpp, err := beside("vppsim")
	if err != nil {
		return err
	}
	cmd := exec.Command(vpp)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", vpp, err)
	}
	return nil
}

// enter starts this program again with the same arguments, in the namespaces of
// the agent. A Go program has many threads and the kernel lets only a
// single-threaded one enter a user namespace, so nsenter (of util-linux, which
// every Debian has) does that step.
func enter(args []string) error {
	pid, err := running()
	if err != nil {
		return fmt.Errorf("first-light does not run here: start it with make run (%w)", err)
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := append([]string{nsenter, "--target", strconv.Itoa(pid), "--mount", "--net", "--wd"}, userFlags(pid)...)
	command = append(append(command, "--", self), args...)
	return fmt.Errorf("starting %s: %w", nsenter, syscall.Exec(nsenter, command, append(os.Environ(), markInside+"=1")))
}

// userFlags enter the user namespace of the process too, if it has another one.
func userFlags(pid int) []string {
	ours, _ := os.Readlink("/proc/self/ns/user")
	theirs, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/user")
	if ours == theirs {
		return nil
	}
	return []string{"--user", "--preserve-credentials"}
}

// execIn turns this process into a command in a named namespace.
func execIn(namespace string, command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return scratch.InNetns(namespace, func() error {
		return fmt.Errorf("starting %s: %w", path, syscall.Exec(path, command, os.Environ()))
	})
}

func pingFrom(out io.Writer, namespace, address string) error {
	return scratch.InNetns(namespace, func() error { return ping(out, address) })
}

// show prints what stands in the namespaces, for machines without iproute2, and in VPP.
func show(out io.Writer) error {
	for _, name := range namespaces() {
		fmt.Fprintf(out, "%s:\n", name)
		if err := scratch.Show(out, name); err != nil {
			return err
		}
	}
	return showVPP(out)
}

// showVPP prints what the simulated VPP keeps.
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
