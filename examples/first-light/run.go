package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/scratch"
)

// Paths below the folder in which first-light was started.
const (
	home    = ".run"
	lockDir = home + "/conf" // not home: the agent locks that one briefly, for its socket
	pidFile = home + "/pid"
	socket  = home + "/agent.sock"
)

// run starts the agent in a scratch network, prints hints when the network is complete,
// and ends with the agent.
func run(out io.Writer) error {
	unlock, err := lock(lockDir)
	if err != nil {
		return err
	}
	defer unlock()
	if pid, err := running(); err == nil {
		return fmt.Errorf("it already runs here, as process %d", pid)
	}
	if err := writeFiles(home); err != nil {
		return err
	}
	status, err := listenStatus()
	if err != nil {
		return err
	}
	defer status.Close()
	return supervise(out, status)
}

// supervise owns the process of the agent. The kernel ends that process when the thread
// that started it ends (see endWithParent), so this thread stays locked.
func supervise(out io.Writer, status *statusSocket) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	to := &transcript{out: out}
	fmt.Fprintln(to, "starting the agent in a network of its own, with a simulated VPP")
	cmd, err := startInside(status.path, to)
	if err != nil {
		return err
	}
	defer os.Remove(pidFile)
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		return errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		if complete(ctx, status, to) == nil {
			fmt.Fprint(to, whatToTry())
		}
	}()
	go func() {
		for s := range signals {
			// If this fails, the process has ended already, and Wait reports it.
			_ = cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	signal.Stop(signals)
	close(signals)
	if err == nil {
		fmt.Fprintln(to, "\nThe scratch network is gone. Your files stay in "+home+" (make clean removes them).")
	}
	return err
}

// startInside starts this program again in a scratch network, where it becomes the agent.
// The agent has a process group of its own, so Ctrl-C reaches it only once, through this
// process.
func startInside(statusPath string, out io.Writer) (*exec.Cmd, error) {
	agent, err := beside("agent")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe", insideVerb, agent,
		"-config-dir="+home+"/conf", "-socket="+socket, "-on-exit=remove")
	cmd.Stdout, cmd.Stderr = out, out // one writer: its lines do not mix
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+statusPath)
	cmd.SysProcAttr = scratch.Attr()
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w%s", scratch.ErrDenied, err, remedy)
	}
	return cmd, nil
}

// lock creates dir if it is missing, and locks it until unlock or the end of the process.
// If several processes start at once, one succeeds.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.New("it already runs here")
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return func() { d.Close() }, nil
}

// remedy follows an error that says that namespaces are denied.
const remedy = `
It needs a network namespace of its own. Any of these gives it one:
  run it as root (in a container: with --privileged), or
  sysctl -w kernel.apparmor_restrict_unprivileged_userns=0   (Ubuntu 24.04 and later), or
  sysctl -w user.max_user_namespaces=10000                   (where it is 0)`

// beside returns the path of a program in the folder of this one.
func beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: run make build", err)
	}
	return path, nil
}

// running returns the process of the first-light that runs in this folder. A process in
// our own network only has the same number as an old one.
func running() (int, error) {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return 0, err
	}
	theirs, err := os.Readlink("/proc/" + string(text) + "/ns/net")
	if err != nil {
		return 0, err
	}
	ours, err := os.Readlink("/proc/self/ns/net")
	if err == nil && ours == theirs {
		err = fmt.Errorf("process %s is something else", text)
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}
