package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// failVariable has TestThatFails fail in a process of its own, whose output other tests read.
const failVariable = "KEYPLANE_TEST_FAILS"

// TestThatFails logs much more than a reader can take.
func TestThatFails(t *testing.T) {
	if os.Getenv(failVariable) == "" {
		t.Skip("it runs in TestFailureIsReadable")
	}
	for i := range 100_000 {
		fmt.Fprintf(Log(t), "line %d of %s\n", i, t.Name())
		if i == 50_000 {
			t.Errorf("expected %d lines", i)
		}
	}
	t.Cleanup(func() { fmt.Fprintln(Log(t), "the agent has ended") })
	t.Run("and a part of it", func(t *testing.T) {
		fmt.Fprintln(Log(t), "a log of its own")
		t.Error("expected nothing")
	})
	t.Run("and a part that passes", func(t *testing.T) { fmt.Fprintln(Log(t), "nobody reads this") })
}

// A failed test begins with what it expected, has at most 200 lines, and ends with the name of the file that has all of its log.
func TestFailureIsReadable(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestThatFails$")
	cmd.Env = append(os.Environ(), failVariable+"=yes", "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("the test passes; expected a failure")
	}
	lines := strings.Split(string(out), "\n")
	if len(lines) > 200 {
		t.Errorf("%d lines; expected at most 200", len(lines))
	}
	if !strings.Contains(lines[1], "expected 50000 lines") {
		t.Errorf("the first line is %q; expected the message of the test", lines[1])
	}
	for _, want := range []string{"the agent has ended\n", "a log of its own\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("expected %q among the last lines", want)
		}
	}
	// The part ends before the whole.
	last := `(?s)the complete log: \S+/TestThatFails-and_a_part_of_it-\d+\.log\n.*the complete log: \S+/TestThatFails-\d+\.log\nFAIL\n`
	if !regexp.MustCompile(last).Match(out) {
		t.Error("expected that the last line of each test names its file")
	}
	files, _ := filepath.Glob(dir + "/*.log")
	if len(files) != 2 {
		t.Errorf("%d files are left, %q; expected those of the two tests that failed", len(files), files)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if n := strings.Count(string(text), "\n"); err != nil || n != 1 && n != 100_001 {
			t.Errorf("%s has %d lines (%v); expected the complete log", path, n, err)
		}
	}
	if t.Failed() {
		t.Log(LastLines(string(out)))
	}
}

func TestLastLines(t *testing.T) {
	many := strings.Repeat("x\n", shownLines+1)
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"one\ntwo\n", "one\ntwo"},
		{many, "[2 bytes before]\n" + strings.TrimRight(many[2:], "\n")},
		{strings.Repeat("x", shownBytes+5), "[5 bytes before]\n" + strings.Repeat("x", shownBytes)},
	} {
		if got := LastLines(test.text); got != test.want {
			t.Errorf("%d bytes: %q", len(test.text), got)
		}
	}
}
