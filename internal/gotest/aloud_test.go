package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// aloud returns the command of the script that says what a long command does. It says that at once.
func aloud(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := filepath.Abs("../../.ci/aloud")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "ALOUD_PERIOD=0")
	return cmd
}

// A build counts the packages that it compiles, and not those that are compiled already.
func TestBuildIsCounted(t *testing.T) {
	nonce := fmt.Sprintf("const nonce = %d\n", time.Now().UnixNano()) // no build before has compiled this
	first, second := aloud(t, "build", "", "./b"), aloud(t, "build", "", "./b")
	enter(t, map[string]string{"a/a.go": "package a\n" + nonce, "b/b.go": "package b\nimport _ \"example.com/owner/m/a\"\n" + nonce})
	out, err := first.CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, ": 1 of 2 packages compiled, ") || !strings.Contains(text, ": 2 of 2 packages compiled, ") {
		t.Errorf("expected 1 of 2 and 2 of 2 packages: %v\n%s", err, out)
	}
	out, err = second.CombinedOutput()
	if err != nil || strings.Contains(string(out), "1 of") {
		t.Errorf("expected that nothing is left to compile: %v\n%s", err, out)
	}
}

// The output and the exit code of the command are those of the script.
func TestAloudPassesOn(t *testing.T) {
	text, err := aloud(t, "doing it", "sh", "-c", "echo one thing; echo another >&2; exit 3").CombinedOutput()
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok || failed.ExitCode() != 3 {
		t.Errorf("the error is %v; expected exit status 3", err)
	}
	for _, want := range []string{"one thing\n", "another\n", "doing it, 0 s\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("expected %q:\n%s", want, text)
		}
	}
}
