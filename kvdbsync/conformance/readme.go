package conformance

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Block returns the first fenced block of README.md in a language, "" being one too.
func Block(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if f[1] == language {
			return f[2]
		}
	}
	t.Fatalf("README.md has no block of %q", language)
	return ""
}

// RunConsole runs each command of the console session in README.md, which begins with "$
// ", and compares its output with the following lines. The first command creates interface
// lo1, which a watch of all of root must show; the last one removes it. Programs come from
// bin.
func RunConsole(t *testing.T, c kvdbsync.Connector, root, bin string, env ...string) {
	m := Follow(t, c, root)
	steps := regexp.MustCompile(`(?m)^\$ (.*)\n((?:[^$].*\n)*)`).FindAllStringSubmatch(Block(t, "console"), -1)
	if len(steps) < 3 {
		t.Fatalf("%d commands, want to put, look and delete", len(steps))
	}
	for i, step := range steps {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", step[1])
		cmd.Env = append(append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")), env...)
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != step[2] {
			t.Errorf("%s: %v, printed\n%s\nwant\n%s", step[1], err, out, step[2])
		}
		switch i {
		case 0:
			m.Await("config/linux/interfaces/v2/interface/lo1", `{"name":"lo1","type":"LOOPBACK"}`)
		case len(steps) - 1:
			m.Await()
		}
	}
}
