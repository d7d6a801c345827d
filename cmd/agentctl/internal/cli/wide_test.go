package cli_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
)

// onTerminal returns what a command prints on a terminal of 80 columns.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	master, other, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := pty.Setsize(master, &pty.Winsize{Cols: 80, Rows: 24}); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(master) // EIO is how a terminal ends
		read <- string(text)
	}()
	var errs bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	code := cli.Run(t.Context(), args, cli.Streams{Out: other, Err: &errs}, none)
	other.Close()
	text := strings.ReplaceAll(<-read, "\r\n", "\n")
	if code != cli.ExitDone || errs.Len() > 0 {
		t.Errorf("%q: ended with %d: %s", args, code, &errs)
	}
	return text
}

// TestWideIsWhole prints the content of values on a terminal that is narrower than it.
func TestWideIsWhole(t *testing.T) {
	a := startAgent(t)
	for _, command := range []string{"get", "values"} {
		text := onTerminal(t, "--http-port", a.port, command, "linux.interfaces.interface", "-o", "wide")
		if !strings.Contains(text, `{"name":"veth1","type":"VETH"`) || strings.Contains(text, "…") {
			t.Errorf("%s is not whole:\n%s", command, text)
		}
	}
}
