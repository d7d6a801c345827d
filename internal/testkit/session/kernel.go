package session

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

// kernel waits for a line in the output of scratch.Show.
func kernel(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, len(args) == 2, "[!] kernel NETNS REGEXP")
	re := pattern(ts, args[1])
	var last bytes.Buffer
	ok := testkit.Until(func() bool {
		last.Reset()
		// A dump that was interrupted by a change is repeated.
		err := scratch.Show(&last, args[0])
		return err == nil && re.Match(last.Bytes()) != neg
	})
	if !ok {
		ts.Fatalf("%s: want a line like %q: %v; it has\n%s", args[0], re, !neg, &last)
	}
}

// namespace is the command netns: it adds a named network namespace until the script ends,
// or deletes it.
func namespace(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, len(args) == 1, "[!] netns NAME")
	if neg {
		ts.Check(scratch.DelNetns(args[0]))
		return
	}
	ts.Check(scratch.AddNetns(args[0]))
	ts.Defer(func() {
		// The script may have deleted it itself.
		_ = scratch.DelNetns(args[0])
	})
}

// lookPath finds a program in the PATH of the script.
func lookPath(ts *testscript.TestScript, name string) (string, error) {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program %s in PATH", name)
}
