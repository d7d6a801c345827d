package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The test program is also the command that gotestsum is to call.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == again {
		main()
		return
	}
	os.Exit(m.Run())
}

// enter makes a module with these files the working folder.
func enter(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files["go.mod"] = "module example.com/owner/m\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

// What passes has a line, and what fails has its failed tests, each with its name first.
func TestPlain(t *testing.T) {
	enter(t, map[string]string{
		"good/a_test.go":   "package good\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Log(\"unseen\") }\n",
		"bad/a_test.go":    "package bad\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Log(\"unseen\") }\nfunc TestB(t *testing.T) { t.Run(\"part\", func(t *testing.T) { t.Error(\"expected 1\") }) }\n",
		"none/a.go":        "package none\n",
		"broken/a.go":      "package broken\nvar a = b\n",
		"broken/t_test.go": "package broken\n",
	})
	var out strings.Builder
	err := run([]string{"-timeout", "1m", "./..."}, &out)
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		t.Errorf("the error is %v; expected that of go test", err)
	}
	for _, want := range []string{
		"ok  \texample.com/owner/m/good\t", "--- FAIL: TestB (0.00s)\n--- FAIL: TestB/part (0.00s)\n    a_test.go:4: expected 1\nFAIL\n",
		"FAIL\texample.com/owner/m/bad\t", "?   \texample.com/owner/m/none\t[no test files]\n", "undefined: b\n", "FAIL\texample.com/owner/m/broken [build failed]\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing says %q", want)
		}
	}
	for _, no := range []string{"unseen", "=== RUN", "PASS"} {
		if strings.Contains(out.String(), no) {
			t.Errorf("the output has %q; expected only what failed", no)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// standIn does what gotestsum does: it runs the command, and again for one test, and the repetition judges.
const standIn = `#!/bin/sh
for arg; do
	case $arg in --jsonfile=*) file=${arg#*=} ;; esac
done
while [ "$1" != -- ]; do shift; done
shift
"$@" >"$file" || "$@" '-test.run=^TestOnce$' example.com/owner/m/a >>"$file"
`

// A test that fails and then passes is written down, with what it has said first.
func TestRepetition(t *testing.T) {
	dir := enter(t, map[string]string{
		"gotestsum": standIn,
		"a/a_test.go": `package a
import ("flag"; "os"; "testing")
var unknown = flag.Int("unknown", 0, "a flag that go test does not know")
func TestOnce(t *testing.T) {
	if _, err := os.Stat("failed"); err != nil {
		os.WriteFile("failed", nil, 0o600)
		t.Fatalf("expected a file; the flag is %d", *unknown)
	}
}
`,
	})
	flaky := filepath.Join(dir, "flaky")
	var out strings.Builder
	if err := run([]string{"-rerun", dir + "/gotestsum", "-flaky", flaky, "-timeout", "1m", "./a", "-run", "^TestO", "-unknown=7"}, &out); err != nil {
		t.Errorf("a repetition that passed: %v\n%s", err, out.String())
	}
	text, err := os.ReadFile(flaky)
	if want := "example.com/owner/m/a TestOnce: a_test.go:7: expected a file; the flag is 7\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v; expected %q", text, err, want)
	}
}

// A package that fails though its tests pass stays failed: the repetition of no test passes.
func TestRepetitionProvesNothing(t *testing.T) {
	dir := enter(t, map[string]string{
		"gotestsum": standIn,
		"a/a_test.go": `package a
import ("os"; "testing")
func TestMain(m *testing.M) {
	if m.Run(); len(os.Args) > 0 {
		if _, err := os.Stat("failed"); err != nil {
			os.WriteFile("failed", nil, 0o600)
			os.Exit(1)
		}
	}
}
func TestA(t *testing.T) {}
`,
	})
	var out strings.Builder
	err := run([]string{"-rerun", dir + "/gotestsum", "-flaky", dir + "/flaky", "./a"}, &out)
	if err == nil || !strings.Contains(err.Error(), "example.com/owner/m/a failed outside of its tests") {
		t.Errorf("the error is %v; expected one that names the package", err)
	}
}

func TestEventsOf(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"-timeout 1m ./a ./b -run X -rapid.checks=5", "test -json -timeout 1m ./a ./b -run X -rapid.checks=5"},
		{"-timeout 1m ./a ./b -run X -rapid.checks=5 -test.run=^Y$ m/b", "test -json -count=1 m/b -test.run=^Y$ -timeout 1m -rapid.checks=5"},
	} {
		if got := eventsOf(strings.Fields(test.args)); !slices.Equal(got, strings.Fields(test.want)) {
			t.Errorf("%s: %q; expected %s", test.args, got, test.want)
		}
	}
	if _, err := parse([]string{"-rerun", "gotestsum", "./..."}); err == nil {
		t.Error("-rerun without -flaky is accepted")
	}
}
