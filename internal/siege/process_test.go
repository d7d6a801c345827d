package siege

import (
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/scratch"
)

// A process is a built program that a test starts, kills and starts again.
type process struct {
	program string
	args    []string
	env     []string // beside the test's own
	dir     string   // it works there
	netns   string   // its network namespace; empty: the test's
	out     io.Writer

	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// start starts the process, or starts it again.
func (p *process) start() error {
	cmd, ended := exec.Command(p.program, p.args...), make(chan struct{})
	cmd.Env = append(os.Environ(), p.env...)
	out, printed, err := os.Pipe()
	if err != nil {
		return err
	}
	// As small as the kernel allows, so that a reader that hangs is felt at once.
	if _, err := unix.FcntlInt(printed.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		return err
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, printed, printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := in(p.netns, cmd.Start); err != nil {
		return err
	}
	printed.Close() // the process has it
	go func() {
		_, _ = io.Copy(p.out, out) // until the process ends
		out.Close()
		_ = cmd.Wait() // the exit code is read from the process's state
		close(ended)
	}()
	p.cmd, p.ended = cmd, ended
	return nil
}

// in does something in a network namespace; the empty name is that of the test.
func in(netns string, do func() error) error {
	if netns == "" {
		return do()
	}
	return scratch.InNetns(netns, do)
}

// kill ends the process at once. It may have ended already.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.ended
}

// running tells whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}
