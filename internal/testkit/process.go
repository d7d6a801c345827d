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

// startTime is how long a server may take to serve, on a busy machine.
const startTime = time.Minute

// A process is a server that a test starts, stops, kills, pauses and starts
// again. Its methods are called from the goroutine of the test.
type process struct {
	t     testing.TB
	path  string
	args  []string
	ready func() bool

	namespaces uintptr // new ones, of its own

	cmd    *exec.Cmd
	ended  chan struct{}
	output string // path of a file with what all runs have said
}

// Start starts the server, again if it has run before, and waits until it serves.
func (p *process) Start() {
	p.t.Helper()
	if err := p.start(); err != nil {
		p.t.Fatal(err)
	}
}

// Running tells whether the server has not ended.
func (p *process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

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
	p.cmd.Stdout, p.cmd.Stderr = output, output // a file, so that no goroutine has to copy
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: p.namespaces}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // how it ended is in its output
		close(ended)
	}(p.cmd, p.ended)
	return p.await()
}

// await polls, as a server has no other way to say that it serves.
func (p *process) await() error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(startTime)
	for !p.ready() {
		select {
		case <-tick.C:
		case <-p.ended:
			return fmt.Errorf("%s ended as it started:\n%s", p.path, p.said())
		case <-late:
			p.Kill()
			return fmt.Errorf("%s does not serve after %v:\n%s", p.path, startTime, p.said())
		}
	}
	return nil
}

// said is all output, of which nothing matters but that it may explain a failure.
func (p *process) said() string {
	text, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop ends the server in its own orderly way.
func (p *process) Stop() { p.signal(syscall.SIGTERM); <-p.ended }

// Kill ends the server at once; it may have ended already.
func (p *process) Kill() {
	if p.ended == nil {
		return // never started
	}
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// Pause freezes the server: connections stay open and nothing answers.
func (p *process) Pause() { p.signal(syscall.SIGSTOP) }

// Continue lets a paused server run on.
func (p *process) Continue() { p.signal(syscall.SIGCONT) }

// signal ignores the error: all it can say is that the process has ended.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }
