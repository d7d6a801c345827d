package cli_test

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
)

// A terminal is the other side of a pseudo terminal: the person at the keyboard.
type terminal struct {
	t      *testing.T
	master *os.File
	seen   []byte
}

// expect reads until text appears after the last one.
func (p *terminal) expect(text string) {
	p.t.Helper()
	buffer := make([]byte, 4096)
	for {
		if _, after, found := bytes.Cut(p.seen, []byte(text)); found {
			p.seen = after
			return
		}
		n, err := p.master.Read(buffer)
		p.seen = append(p.seen, buffer[:n]...)
		if err != nil {
			p.t.Fatalf("%q never appears: %v\n%q", text, err, p.seen)
		}
	}
}

// TestTopOnTerminal draws, is resized, and ends by a key.
func TestTopOnTerminal(t *testing.T) {
	for _, key := range []string{"q", "\x03"} {
		a := startAgent(t)
		master, other, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		defer other.Close()
		// A text that never comes must not hold up all tests.
		if err := master.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := pty.Setsize(master, &pty.Winsize{Cols: 80, Rows: 24}); err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		ended := make(chan int, 1)
		go func() {
			none := func(string) (string, bool) { return "", false }
			ended <- cli.Run(t.Context(), []string{"--http-port", a.port, "top", "--interval", "1h"}, cli.Streams{In: other, Out: other, Err: &errs}, none)
		}()
		p := &terminal{t: t, master: master}
		p.expect("\x1b[?1049h")
		p.expect("transactions 1")
		p.expect("CONFIGURED 3")
		p.expect("filedb")
		p.expect("\x1b[J")
		// A smaller terminal: one line remains, which is the title.
		if err := pty.Setsize(master, &pty.Winsize{Cols: 20, Rows: 1}); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
			t.Fatal(err)
		}
		p.expect("\x1b[Hagentctl …")
		p.expect("\x1b[J")
		if _, err := master.WriteString(key); err != nil {
			t.Fatal(err)
		}
		p.expect("\x1b[?1049l")
		if code := <-ended; code != cli.ExitDone || errs.Len() > 0 {
			t.Errorf("%q: ended with %d: %s", key, code, &errs)
		}
	}
}

// TestTopInPipe prints one snapshot without control sequences.
func TestTopInPipe(t *testing.T) {
	a := startAgent(t)
	out := agentctl(t, "--http-port", a.port, "top")
	for _, want := range []string{"transactions 1 ", "\nSOURCE ", "\nfiledb ", "\nDESCRIPTOR ", "\ninterface "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("control sequences are printed: %q", out)
	}
	if out := agentctl(t, "--http-port", a.port, "top", "--interval", "1ms"); !strings.Contains(out, "interval: 1ms: expected at least 100ms") {
		t.Errorf("printed %s", out)
	}
}
