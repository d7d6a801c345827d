package session

import (
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

const (
	// copies is how many copies of a test run at once.
	copies = 4
	// scriptVariable names the script that a copy runs.
	scriptVariable = "KEYPLANE_SCRIPT"
	// binVariable is where a copy finds the programs, so that they are built once.
	binVariable = "KEYPLANE_BIN"
	// coverVariable names the folder in which programs of the tests count the statements that they run.
	coverVariable = "KEYPLANE_COVER"
	// goCoverVariable is what such a program reads. go test -cover sets it to a folder of its own, from which it
	// takes only what copies of the test wrote.
	goCoverVariable = "GOCOVERDIR"
)

// ownScript is the script that this copy runs. It is empty for the test itself.
func ownScript() string { return os.Getenv(scriptVariable) }

// Build is testkit.Build, for the test itself and not its copies. If KEYPLANE_COVER names a folder, as by make cover, the
// programs write there which statements they have run.
func Build(t testing.TB, packages ...string) (bin string) {
	t.Helper()
	var options []string
	if dir := os.Getenv(coverVariable); dir != "" {
		options = []string{"-cover", "-coverpkg=github.com/keyplane/keyplane/..."}
		// t.Setenv would forbid parallel tests. The folder is the same for all of them.
		if err := os.Setenv(goCoverVariable, dir); err != nil { //nolint:usetesting // see above
			t.Fatal(err)
		}
	}
	if bin := os.Getenv(binVariable); bin != "" {
		return bin
	}
	return testkit.Build(t, options, packages...)
}

// scriptsIn returns the scripts in a folder.
func scriptsIn(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no scripts in %s (%v)", dir, err)
	}
	return all
}

// runCopies runs each script in a copy of the test, in a scratch network of its own. Several
// copies run at once. Whichever ends takes the next script, because scripts differ in length.
func runCopies(t *testing.T, bin string, scripts []string) {
	t.Helper()
	next, log := make(chan string), testkit.Log(t)
	var all sync.WaitGroup
	for range copies {
		all.Go(func() {
			for script := range next {
				runCopy(t, log, bin, script)
			}
		})
	}
	for _, script := range scripts {
		next <- script
	}
	close(next)
	all.Wait()
}

// runCopy runs one script in another process of this test program, which has namespaces of
// its own. Scripts can therefore run at once without sharing a network. The log gets the output of a copy that fails.
func runCopy(t *testing.T, log io.Writer, bin, script string) {
	run := flag.Lookup("test.run").Value.String()
	if !strings.Contains(run, "/") {
		run = "^" + t.Name() + "$"
	}
	arguments := []string{"-test.v", "-test.run", run, "-test.timeout", "0"}
	if testing.CoverMode() != "" {
		// What the copy counts there becomes a part of this test's profile.
		arguments = append(arguments, "-test.gocoverdir", flag.Lookup("test.gocoverdir").Value.String())
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/exe", arguments...)
	cmd.Env = append(os.Environ(), scriptVariable+"="+script, binVariable+"="+bin)
	cmd.SysProcAttr = scratch.Attr()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v: %s", script, err, reason(out))
		_, _ = log.Write(out) // it never fails
		return
	}
	for line := range strings.Lines(string(out)) {
		if testing.Verbose() || strings.Contains(line, "SKIP") {
			t.Log(strings.TrimRight(line, "\n"))
		}
	}
}

// reason returns the line of a script's output that says what it expected. testscript prints it last.
func reason(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "FAIL: ") {
			return line
		}
	}
	return "it has ended without a reason"
}
