package main

import (
	"bufio"
	"regexp"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

// reflected matches a function that looks methods up by a name which the linker does not know.
var reflected = regexp.MustCompile(`\S+ <ReflectMethod>`)

// TestUnusedMethodsAreLeftOut links the agent as it is released. One function that finds methods
// by a name of run time, such as text/template or net/rpc's server, makes the linker keep every
// exported method of every type: 16 MB of the program, and 8 MB of the memory of each agent.
// Options.Models with a NameTemplate are such a case, so a program of its own may be larger.
func TestUnusedMethodsAreLeftOut(t *testing.T) {
	cmd := testkit.GoBuild(t, "-ldflags=-dumpdep", "-o", t.TempDir(), ".")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	edges, found := 0, map[string]bool{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for ; lines.Scan(); edges++ {
		for _, name := range reflected.FindAllString(lines.Text(), -1) {
			found[name] = true
		}
	}
	if err := cmd.Wait(); err != nil || lines.Err() != nil {
		t.Fatal(err, lines.Err())
	}
	if edges < 10_000 {
		t.Errorf("the linker lists %d edges: has -dumpdep changed?", edges)
	}
	for name := range found {
		t.Errorf("the agent contains %s", name)
	}
}
