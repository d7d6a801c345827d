package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A process is a server that a test starts, stops, kills, pauses and starts
// again. Its methods are called from the goroutine of the test.
type process struct {
	t     testing.TB
	path  string
	args  []string
	ready func() bool

	namespaces uintptr // clone flags of its private namespaces

	cmd    *exec.Cmd
	ended  chan struct{}
	output string // path of a file with the output of all runs
}

// Start starts or restarts the server and waits until it serves.
func (p *process) Start() {
	p.t.Helper()
	if err := p.start(); err != nil {
		p.t.Fatal(err)
	}
}

// Running reports whether the server is running.
func (p *process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// start starts the program, and waits until it serves or has ended. Its output goes to a
// file, which errors quote. It dies with the test, also if the test is killed.
func (p *process) start() error {
	if p.output == "" {
		p.output = filepath.Join(p.t.TempDir(), "output")
	}
	output, err := os.OpenFile(p.output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	p.cmd = exec.Command(p.path, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = output, output // a file needs no copying goroutine
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: p.namespaces}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // the output explains a failure
		close(ended)
	}(p.cmd, p.ended)
	return p.await()
}

// await polls until the server serves; there is no common way to be notified.
func (p *process) await() error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(Patience)
	for !p.ready() {
		select {
		case <-tick.C:
		case <-p.ended:
			return fmt.Errorf("%s ended as it started:\n%s", p.path, p.said())
		case <-late:
			p.Kill()
			return fmt.Errorf("%s does not serve after %v:\n%s", p.path, Patience, p.said())
		}
	}
	return nil
}

// said returns the end of the output, to explain a failure.
func (p *process) said() string {
	text, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return LastLines(string(text))
}

// Stop ends the server in an orderly way.
func (p *process) Stop() { p.signal(syscall.SIGTERM); <-p.ended }

// Kill ends the server at once; it may have ended already.
func (p *process) Kill() {
	if p.ended == nil {
		return // it was never started
	}
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// Pause freezes the server: connections stay open and nothing answers.
func (p *process) Pause() { p.signal(syscall.SIGSTOP) }

// Continue lets a paused server run on.
func (p *process) Continue() { p.signal(syscall.SIGCONT) }

// signal ignores the error: the process can only have ended.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }
