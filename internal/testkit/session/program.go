package session

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyplane/keyplane/internal/testkit"
)

// programsKey is the key of the programs among the values of a script.
type programsKey struct{}

// A program runs in the background of a script.
type program struct {
	cmd  *exec.Cmd
	log  log
	done chan struct{} // closed when it has ended
}

// ended reports whether the program has ended and its exit code is known.
func (p *program) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// A log collects the output of a program, and the position up to which a script has read
// it.
type log struct {
	mu   sync.Mutex
	text []byte
	read int
}

// Write appends to the log. Standard output and standard error share it, in the order in
// which they were written.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

// advance moves the position past the last of the first matches in the unread part, if each pattern has one.
func (l *log) advance(patterns []*regexp.Regexp) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := 0
	for _, re := range patterns {
		at := re.FindIndex(l.text[l.read:])
		if at == nil {
			return false
		}
		end = max(end, at[1])
	}
	l.read += end
	return true
}

// unread returns the output after the last line that was awaited.
func (l *log) unread() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text[l.read:])
}

// programs returns the programs of a script by name. Only the script's goroutine uses it.
func programs(ts *testscript.TestScript) map[string]*program {
	return ts.Value(programsKey{}).(map[string]*program)
}

// named returns a program, or ends the script if none was started under that name.
func named(ts *testscript.TestScript, name string) *program {
	p := programs(ts)[name]
	if p == nil {
		ts.Fatalf("nothing called %s was started", name)
	}
	return p
}

// start is the command that starts a program in the background. It is killed at the end of
// the script if it is still running.
func start(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, !neg && len(args) >= 2, "start NAME PROGRAM ARGUMENT...")
	p := &program{done: make(chan struct{})}
	path, err := lookPath(ts, args[1])
	ts.Check(err)
	p.cmd = exec.Command(path, args[2:]...)
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Env = environment(ts)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	ts.Check(p.cmd.Start())
	programs(ts)[args[0]] = p
	go func() {
		// The exit code is read from the process's state.
		_ = p.cmd.Wait()
		close(p.done)
	}()
	ts.Defer(func() {
		// It has ended already if this fails.
		_ = p.cmd.Process.Kill()
		<-p.done
		ts.Logf("[%s]\n%s", args[0], p.log.text)
	})
}

// await is the command that waits until a program has printed lines, in any order. The search continues
// after the last match, so the same line can be awaited twice.
func await(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, !neg && len(args) >= 2, "await NAME REGEXP...")
	p, matched := named(ts, args[0]), false
	var patterns []*regexp.Regexp
	for _, text := range args[1:] {
		patterns = append(patterns, pattern(ts, text))
	}
	testkit.Until(func() bool {
		over := p.ended() // asked first, so that the log contains its last output
		matched = p.log.advance(patterns)
		return matched || over
	})
	if !matched {
		ts.Fatalf("%s (ended: %v) did not print %q after what was awaited before:\n%s", args[0], p.ended(), patterns, p.log.unread())
	}
}

// said is the command that searches all output so far. It does not wait, so a negative
// check is only reliable after an event that comes later.
func said(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, len(args) == 2, "[!] said NAME REGEXP")
	p, re := named(ts, args[0]), pattern(ts, args[1])
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	if line := re.Find(p.log.text); (line != nil) == neg {
		ts.Fatalf("%s has printed %q: want a match of %q: %v", args[0], line, re, !neg)
	}
}

// prints is the command that repeats a program until its output matches.
func prints(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, len(args) >= 2, "[!] prints REGEXP PROGRAM ARGUMENT...")
	re := pattern(ts, args[0])
	path, err := lookPath(ts, args[1])
	ts.Check(err)
	var out []byte
	ok := testkit.Until(func() bool {
		cmd := exec.Command(path, args[2:]...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
		out, err = cmd.CombinedOutput() // a failing program prints the reason
		return re.Match(out) != neg
	})
	if !ok {
		ts.Fatalf("%s: want a line like %q: %v; it printed (%v)\n%s", args[1], re, !neg, err, out)
	}
}

// signal is the command that sends a signal to a program.
func signal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}
	arguments(ts, !neg && len(args) == 2 && signals[args[1]] != 0, "signal NAME INT|TERM|KILL|STOP|CONT")
	ts.Check(named(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
}

// ended is the command that waits for the end of a program, and checks its exit code.
func ended(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, !neg && (len(args) == 1 || len(args) == 2), "ended NAME [CODE]")
	p, want := named(ts, args[0]), 0
	if len(args) == 2 {
		code, err := strconv.Atoi(args[1])
		ts.Check(err)
		want = code
	}
	ok := testkit.Until(p.ended)
	switch {
	case !ok:
		ts.Fatalf("%s still runs", args[0])
	case p.cmd.ProcessState.ExitCode() != want:
		ts.Fatalf("%s ended with %v, want exit code %d", args[0], p.cmd.ProcessState, want)
	}
}

// environment returns the script's environment with the variables of the scratch network,
// which scripts do not see.
func environment(ts *testscript.TestScript) []string {
	env := os.Environ()
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "WORK", "ETCD_ENDPOINTS", "CONSUL_HTTP_ADDR", "STATE_DIRECTORY", "KVSCHEDULER_CONFIG"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}
