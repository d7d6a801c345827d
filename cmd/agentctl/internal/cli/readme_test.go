package cli_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// What a README shows of agentctl is what it prints.
func TestSessionInREADME(t *testing.T) {
	for _, readme := range []string{"../../../../connectors/bolt/README.md"} {
		text, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		block := consoleBlock.FindSubmatch(text)
		if block == nil {
			t.Fatalf("%s shows no session", readme)
		}
		p := params("")
		p.Dir = scriptOf(t, string(block[1]))
		testscript.Run(t, p)
	}
}

// scriptOf turns commands and what they print into a script in a folder of its own.
func scriptOf(t *testing.T, session string) (dir string) {
	var script, files strings.Builder
	script.WriteString("agent\n")
	for i, step := range strings.Split("\n"+session, "\n$ ")[1:] {
		command, output, _ := strings.Cut(step, "\n")
		name := "output" + string(rune('a'+i))
		script.WriteString("exec " + strings.Replace(command, "agentctl ", "agentctl --socket $SOCKET ", 1) + "\ncmp stdout " + name + "\n")
		files.WriteString("-- " + name + " --\n" + strings.TrimSuffix(output, "\n") + "\n")
	}
	dir = t.TempDir()
	if err := os.WriteFile(dir+"/session.txtar", []byte(script.String()+files.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
