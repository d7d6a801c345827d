package cli_test

import (
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// tree returns a new tree of commands.
func tree() *cobra.Command {
	none := func(string) (string, bool) { return "", false }
	root, _ := cli.Command(&session.Session{Streams: cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, Env: none})
	return root
}

// commands yields cmd and all commands below it.
func commands(cmd *cobra.Command) iter.Seq[*cobra.Command] {
	return func(yield func(*cobra.Command) bool) {
		if !yield(cmd) {
			return
		}
		for _, sub := range cmd.Commands() {
			for c := range commands(sub) {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// TestHelp checks the help of each command. The flags of all commands appear only in that of
// agentctl and in the output of options.
func TestHelp(t *testing.T) {
	for c := range commands(tree()) {
		path := c.CommandPath()
		if c.Short == "" || c.Long == "" && c.Example == "" && !c.HasSubCommands() {
			t.Errorf("%s: expected Short, and Long or Example", path)
		}
		help := agentctl(t, append(strings.Fields(path)[1:], "-h")...)
		if strings.Contains(help, "--etcd-endpoints") != (c == c.Root()) {
			t.Errorf("%s -h lists the flags of all commands, or agentctl -h does not:\n%s", path, help)
		}
		if c.HasParent() && !strings.Contains(help, "\nFlags of all commands: agentctl options\n") {
			t.Errorf("%s -h does not name the flags of all commands:\n%s", path, help)
		}
		about, _, _ := strings.Cut(help, "\nExamples:")
		_, flags, _ := strings.Cut(help, "\nCommands:")
		for line := range strings.Lines(about + flags) {
			if show.Width(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s -h has a line of more than 80 columns: %s", path, line)
			}
		}
		if c.Example != "" && !strings.Contains(help, "\nExamples:\n"+c.Example+"\n") {
			t.Errorf("%s -h has no examples:\n%s", path, help)
		}
	}
	out := agentctl(t, "options")
	if !strings.Contains(out, "--etcd-endpoints") || strings.Contains(out, "--help") {
		t.Errorf("options prints %s", out)
	}
	for line := range strings.Lines(out) {
		if show.Width(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("options prints a line of more than 80 columns: %s", line)
		}
	}
}

// TestExamples checks that the command lines of examples are valid.
func TestExamples(t *testing.T) {
	checked := 0
	for c := range commands(tree()) {
		for line := range strings.Lines(c.Example) {
			args := shellWords(line)
			if args[0] != "agentctl" { // another program, which calls it
				continue
			}
			checked++
			cmd, rest, err := tree().Find(args[1:])
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			// The command itself, one below it, or another one with the output of this one.
			if err != nil || !strings.HasPrefix(cmd.CommandPath(), c.CommandPath()) && !strings.Contains(line, "$("+c.CommandPath()) {
				t.Errorf("%s: example %q is for %s: %v", c.CommandPath(), line, cmd.CommandPath(), err)
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d examples were found", checked)
	}
}

// shellWords splits a command line as a shell does. It ends at a pipe or redirection.
func shellWords(line string) (out []string) {
	var word strings.Builder
	quote := rune(0)
	for _, r := range strings.TrimSpace(line) + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && strings.ContainsRune("|<>", r):
			return out
		case quote == 0 && r == ' ':
			if word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return out
}

// TestCompletionIsBounded has an agent that never answers. A shell does not wait for it as long
// as a command would.
func TestCompletionIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	if out := agentctl(t, "__complete", "--http-port", port, "--timeout", "100h", "explain", ""); !strings.HasPrefix(out, "_activeHelp_ agentctl: the agent at ") || !strings.Contains(out, " does not answer in time") {
		t.Errorf("printed %s", out)
	}
}

// TestManual checks that there is a page for each command that the help shows.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	if out := agentctl(t, "man", dir); out != "" {
		t.Fatal(out)
	}
	for c := range commands(tree()) {
		if c.Hidden || c.Name() == "help" { // the page of agentctl is the help
			continue
		}
		file := filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		page, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(page), "\n.SH SYNOPSIS\n") {
			t.Errorf("%s is no manual page:\n%s", file, page)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "agentctl-plan.1"))
	if err != nil || !strings.Contains(string(page), "\n+ create, ~ update, - delete") {
		t.Errorf("a line of symbols became a list: %v\n%s", err, page)
	}
}
