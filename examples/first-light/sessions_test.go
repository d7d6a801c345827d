package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/session"
)

var record = flag.Bool("record", false, "write the sessions of docs/ as they are now")

var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// The sessions in docs/ are what a user sees on a terminal of 80 columns, in the network of make run.
// Those of one document follow each other in one network.
func TestSessionsInDocs(t *testing.T) {
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	bin := session.Build(t, ".", "../../cmd/agent", "../../cmd/agentctl", "../../cmd/vppsim")
	for _, name := range []string{"try", "configure", "operate", "troubleshoot", "migrate", "agentctl"} {
		t.Run(name, func(t *testing.T) {
			path := "../../docs/" + name + ".md"
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			u := newUser(t, bin)
			blocks := 0
			got := consoleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
				blocks++
				return "```console\n" + u.session(consoleBlock.FindStringSubmatch(block)[1]) + "```"
			})
			u.leftNothing()
			if blocks == 0 {
				t.Errorf("%s shows no session: did its form change?", path)
			}
			if *record {
				err = os.WriteFile(path, []byte(got), 0o644)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A user is somebody at a terminal, in a folder where first-light runs.
type user struct {
	t   *testing.T
	dir string
}

// newUser starts first-light in a folder of its own. It ends with the test.
func newUser(t *testing.T, bin string) user {
	t.Helper()
	u := user{t, t.TempDir()}
	if err := os.Symlink(bin, filepath.Join(u.dir, ".bin")); err != nil {
		t.Fatal(err)
	}
	log, out := testkit.Log(t), &transcript{out: &bytes.Buffer{}}
	run := exec.Command(filepath.Join(bin, "first-light"), "run")
	run.Dir, run.Stdout, run.Stderr = u.dir, out, out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := run.Wait(); err != nil {
			t.Error(err)
		}
		fmt.Fprintln(log, out.text())
	})
	if !testkit.Until(func() bool { return strings.Contains(out.text(), "The network stands") }) {
		t.Fatal("first-light has not printed what to try")
	}
	return u
}

// text returns what was written so far.
func (t *transcript) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.(*bytes.Buffer).String()
}

// leftNothing checks that the commands have written files only into .run: a document may be followed in a checkout.
func (u user) leftNothing() {
	u.t.Helper()
	left, err := os.ReadDir(u.dir)
	if err != nil {
		u.t.Error(err)
	}
	for _, entry := range left {
		if name := entry.Name(); name != ".bin" && name != ".run" {
			u.t.Errorf("the commands of the document leave %s beside .run, the scratch folder", name)
		}
	}
}

// session runs the commands of a block. It returns the block: as it is where the output is the same
// but for times and addresses that the kernel draws, else with the new output.
func (u user) session(block string) string {
	var out strings.Builder
	for _, step := range strings.Split("\n"+block, "\n$ ")[1:] {
		command, want, _ := strings.Cut(step, "\n")
		for strings.HasSuffix(command, "\\") {
			more, rest, _ := strings.Cut(want, "\n")
			command, want = command+"\n"+more, rest
		}
		want = strings.TrimSuffix(want, "\n")
		got := u.shown(command, want)
		if lasting(got) != lasting(want) && !*record {
			u.t.Errorf("%s\nprints\n%s\n\nbut the document has\n%s", command, got, want)
		}
		if lasting(got) == lasting(want) {
			got = want
		}
		out.WriteString("$ " + command + "\n")
		if got != "" {
			out.WriteString(got + "\n")
		}
	}
	return out.String()
}

// shown returns the output of a command. One that only reads is repeated until it prints what is wanted:
// the agent follows a change a moment later.
func (u user) shown(command, want string) (got string) {
	if *record {
		time.Sleep(time.Second) // nothing is known to wait for
	}
	got = u.run(command)
	if !reads.MatchString(command) || *record {
		return got
	}
	testkit.Until(func() bool {
		if lasting(got) == lasting(want) {
			return true
		}
		got = u.run(command)
		return false
	})
	return got
}

// reads matches commands that change nothing.
var reads = regexp.MustCompile(`^\.bin/(first-light (show|ping)|agentctl (get|wait|export|validate|values|explain|sources|plan|dump|drift|model|vpp|config (history|get)|kvdb (list|get)))\b`)

// run runs a command on a terminal of 80 columns and 24 lines.
func (u user) run(command string) string {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = u.dir
	cmd.Env = append(os.Environ(), "AGENTCTL_SOCKET=.run/agent.sock", "NO_COLOR=1", "PAGER=cat", "TERM=dumb")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		u.t.Fatal(err)
	}
	defer terminal.Close()
	var out bytes.Buffer
	// The read ends with EIO when the command has ended: there is no other end of a terminal.
	_, _ = out.ReadFrom(terminal)
	_ = cmd.Wait() // commands of a session may fail; their output says so
	text := strings.ReplaceAll(out.String(), "\r\n", "\n")
	return strings.TrimSuffix(progress.ReplaceAllString(text, ""), "\n")
}

// progress matches the lines of work that takes long: on a busy machine, there are more of them.
var progress = regexp.MustCompile(`(?m)^waiting: \d+ of \d+\n`)

// A variable is a part of the output that differs from run to run.
type variable struct {
	pattern *regexp.Regexp
	with    string
}

// variables are times, addresses that the kernel draws, and the widths of columns.
var variables = []variable{
	{regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?(ns|µs|ms|s|m|h)[0-9ms.]*\b`), "TIME"},
	{regexp.MustCompile(`\bfe80::[0-9a-f:]+`), "LINKLOCAL"},
	{regexp.MustCompile(`\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b`), "MAC"},
	{regexp.MustCompile(`\(pid [0-9]+\)`), "(pid PID)"},
	{regexp.MustCompile(` +`), " "},
}

// lasting returns the text without its variable parts.
func lasting(text string) string {
	for _, v := range variables {
		text = v.pattern.ReplaceAllString(text, v.with)
	}
	return strings.ReplaceAll(text, " \n", "\n")
}
