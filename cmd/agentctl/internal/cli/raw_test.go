package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
)

// rawTexts are what the interfaces of the agent and of stores say to programs, and what a missing value
// looks like in Go. No person understands them.
var rawTexts = regexp.MustCompile(`KeyErrors|rpc error|code = \w+ desc|desc = |<nil>|%!|404 page not found|:;|VPPApiError|invalid value: invalid`)

// rawFile is the variable with the file in which runs of agentctl note raw texts.
const rawFile = "RAW_TEXTS"

// main runs agentctl within a script, and notes what of its output no person understands. What a format
// for programs prints is not looked at.
func main() int {
	var out, errs bytes.Buffer
	endOut, endErr := copied(&os.Stdout, &out), copied(&os.Stderr, &errs)
	code := cli.Main()
	endOut()
	endErr()
	seen := errs.String()
	if !forPrograms(os.Args) {
		seen += out.String()
	}
	for line := range strings.Lines(seen) {
		if rawTexts.MatchString(line) {
			note(os.Getenv(rawFile), fmt.Sprintf("%q: %s", os.Args[1:], line))
		}
	}
	return code
}

// copied has what is written to a file, such as the standard output, also written to a buffer. The
// caller calls end after the last write.
func copied(file **os.File, into *bytes.Buffer) (end func()) {
	real := *file
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	*file = w
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.MultiWriter(into, real), r) // a script that has closed its end reads no more
		_, _ = io.Copy(io.Discard, r)
	}()
	return func() {
		w.Close()
		<-done
		*file = real
	}
}

// forPrograms reports whether the output is meant for a program.
func forPrograms(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "-f") || strings.HasPrefix(arg, "-o") || strings.HasPrefix(arg, "--format")
	})
}

// note appends a line to a file.
func note(path, line string) {
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(line)
}

// checkRaw fails the test if a run has noted something.
func checkRaw(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil && len(text) > 0 {
		t.Errorf("these texts reach a person:\n%s", text)
	}
}

// TestRawTextsAreSeen shows that the check can fail.
func TestRawTextsAreSeen(t *testing.T) {
	for _, text := range []string{
		"agentctl: KeyErrors: [a (CREATE): b]", "agentctl: rpc error: code = Unavailable desc = x", "level=WARN err=<nil>",
		"agentctl: 404 Not Found: 404 page not found", "agentctl: values are invalid:;   line 3: mtu", "VPPApiError: Address in use (-105)",
	} {
		if !rawTexts.MatchString(text) {
			t.Errorf("%q is not seen", text)
		}
	}
}
