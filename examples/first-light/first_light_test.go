package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/session"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// The script does what the first five minutes of a user are.
func TestFirstLight(t *testing.T) { runScripts(t, "testdata") }

func TestAsAnOrdinaryUser(t *testing.T) {
	testkit.OrdinaryUser(t) // the script becomes it by setpriv
	runScripts(t, "testdata/user")
}

// Of two that start at the same moment, before either has noted its process, one
// gets the folder; and the next one gets it when that ends.
func TestOneAtATime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), lockDir)
	unlock, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(dir); err == nil || !strings.Contains(err.Error(), "already runs here") {
		t.Errorf("a second one: %v", err)
	}
	unlock()
	unlock, err = lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func runScripts(t *testing.T, dir string) {
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	bin := session.Build(t, ".", "../../cmd/agent", "../../cmd/agentctl", "../../cmd/vppsim")
	// Whoever the script starts programs as may find them, and write.
	setup := func(env *testscript.Env) error {
		return errors.Join(os.Chmod(filepath.Dir(bin), 0o755), os.Chmod(bin, 0o755),
			os.Chmod(filepath.Dir(env.WorkDir), 0o755), os.Chmod(env.WorkDir, 0o777),
			os.Chmod(env.Getenv("TMPDIR"), 0o777))
	}
	session.Run(t, dir, bin, setup, map[string]session.Command{"try": try, "nothing-left": nothingLeft, "nobody-left": nobodyLeft})
}

// try runs a command that first-light printed under "what to try", as it is:
// the one that begins with the arguments.
func try(ts *testscript.TestScript, neg bool, args []string) {
	begin := strings.Join(args, " ")
	all := hints()
	for _, h := range all {
		if !strings.HasPrefix(h.command, "export ") && strings.HasPrefix(inPath(h.command), begin) {
			command := all[0].command + "\n" + inPath(h.command)
			err := ts.Exec("sh", "-c", command)
			if (err != nil) != neg {
				ts.Fatalf("%s: %v", command, err)
			}
			return
		}
	}
	ts.Fatalf("nothing to try begins with %q", begin)
}

// inPath returns a command without the folder of the programs.
func inPath(command string) string {
	return regexp.MustCompile(`\S*/(first-light|agentctl) `).ReplaceAllString(command, "$1 ")
}

// The hints fit on a terminal of 80 columns and 24 lines, below the command that was typed.
func TestHintsFitOnAScreen(t *testing.T) {
	text := regexp.MustCompile(`\S*/(first-light|agentctl) `).ReplaceAllString(whatToTry(), ".bin/$1 ")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 23 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// Shells that take the prompt of the environment get it there, and other commands stay as they are.
func TestPromptOfShells(t *testing.T) {
	for _, shell := range []string{"sh", "/bin/dash", "zsh"} {
		_, env, err := withPrompt("red", []string{shell}, nil)
		if err != nil || len(env) != 1 || !strings.HasPrefix(env[0], "PS1=(red) ") {
			t.Errorf("%s: environment %q, error %v", shell, env, err)
		}
	}
	for _, command := range [][]string{{"ip", "link"}, {"bash", "-c", "true"}, {"ip"}} {
		got, env, err := withPrompt("red", command, nil)
		if err != nil || !slices.Equal(got, command) || len(env) > 0 {
			t.Errorf("%q became %q with %q, error %v", command, got, env, err)
		}
	}
}

// nothingLeft checks the network that first-light was started from, and what it
// was to leave.
func nothingLeft(ts *testscript.TestScript, _ bool, _ []string) {
	links, err := net.Interfaces()
	ts.Check(err)
	if len(links) != 1 {
		ts.Fatalf("interfaces are left: %v", links)
	}
	namespaces, err := os.ReadDir("/run/netns")
	ts.Check(err)
	if len(namespaces) > 0 {
		ts.Fatalf("namespaces are left: %v", namespaces)
	}
	var files []string
	entries, err := os.ReadDir(ts.MkAbs(home))
	ts.Check(err)
	for _, entry := range entries {
		files = append(files, entry.Name())
	}
	if want := []string{"conf", "keys.db", "network", "state"}; !slices.Equal(files, want) {
		ts.Fatalf("%s holds %v, want %v", home, files, want)
	}
	sockets, err := filepath.Glob(ts.Getenv("TMPDIR") + "/first-light-*")
	ts.Check(err)
	if len(sockets) > 0 {
		ts.Fatalf("sockets are left: %v", sockets)
	}
}

// nobodyLeft waits until the agent has followed first-light, which was killed.
func nobodyLeft(ts *testscript.TestScript, _ bool, _ []string) {
	pid := ts.ReadFile(pidFile)
	ended := func() bool {
		_, err := os.Readlink("/proc/" + pid + "/ns/net")
		return err != nil
	}
	if !testkit.Until(ended) {
		ts.Fatalf("process %s runs on", pid)
	}
}
