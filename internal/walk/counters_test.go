package walk

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// rest is how long a window stays open after the event has ended: for the state that is saved and published afterwards.
const rest = 400 * time.Millisecond

// A function is one of the module's, as the counters name it.
type function struct{ file, name string }

// counters are the pipes to those of a program; see walked.
type counters struct {
	commands io.Writer
	answers  *bufio.Reader
}

func (c *counters) tell(t *testing.T, command string) {
	t.Helper()
	_, err := fmt.Fprintln(c.commands, command)
	must(t, err)
	answer, err := c.answers.ReadString('\n')
	must(t, err)
	if answer != "\n" {
		t.Fatalf("%s: %s", command, answer)
	}
}

// executed returns the functions that run while do does, and for rest afterwards.
func (c *counters) executed(t *testing.T, do func()) map[function]bool {
	t.Helper()
	c.tell(t, "clear")
	do()
	<-time.After(rest)
	dir := t.TempDir()
	c.tell(t, "write "+dir)
	out, err := exec.Command("go", "tool", "covdata", "func", "-i="+dir).Output()
	if err != nil {
		t.Fatalf("go tool covdata: %v", err)
	}
	functions, err := parse(out)
	must(t, err)
	return functions
}

var line = regexp.MustCompile(`^github\.com/keyplane/keyplane/(\S+\.go):\d+:\s+(\S+)\s+(\d+\.\d)%$`)

// parse reads the output of go tool covdata func.
func parse(out []byte) (map[function]bool, error) {
	functions := map[function]bool{}
	in := bufio.NewScanner(bytes.NewReader(out))
	for in.Scan() {
		if strings.HasPrefix(in.Text(), "total") {
			continue
		}
		parts := line.FindStringSubmatch(in.Text())
		if parts == nil {
			return nil, fmt.Errorf("line %q: expected FILE:LINE: FUNCTION PERCENT", in.Text())
		}
		if parts[3] != "0.0" {
			functions[function{parts[1], parts[2]}] = true
		}
	}
	return functions, in.Err()
}

// size is how much one event runs.
type size struct{ functions, files, packages, scheduler, orchestrator int }

func sizeOf(functions map[function]bool) (s size) {
	files, packages := map[string]bool{}, map[string]bool{}
	for f := range functions {
		files[f.file], packages[path.Dir(f.file)] = true, true
		switch {
		case strings.HasPrefix(f.file, "scheduler/"):
			s.scheduler++
		case strings.HasPrefix(f.file, "orchestrator/"):
			s.orchestrator++
		}
	}
	s.functions, s.files, s.packages = len(functions), len(files), len(packages)
	return s
}

// least returns the smallest of the events, without what runs when nothing happens, and the least of each figure: in the
// smallest event, other work may have fallen into one part of the agent.
func least(idle map[function]bool, events []map[function]bool) (smallest map[function]bool, s size) {
	for i, e := range events {
		maps.DeleteFunc(e, func(f function, _ bool) bool { return idle[f] })
		of := sizeOf(e)
		if i == 0 {
			smallest, s = e, of
		}
		if len(e) < len(smallest) {
			smallest = e
		}
		s = size{min(s.functions, of.functions), min(s.files, of.files), min(s.packages, of.packages), min(s.scheduler, of.scheduler), min(s.orchestrator, of.orchestrator)}
	}
	return smallest, s
}

// list writes the names of functions, sorted by file.
func list(path string, functions map[function]bool) error {
	var lines []string
	for f := range functions {
		lines = append(lines, f.file+" "+f.name+"\n")
	}
	slices.Sort(lines)
	return os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600)
}
