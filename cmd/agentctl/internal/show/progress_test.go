package show_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// noEnv is an empty environment, and dumb that of a terminal without control sequences.
func noEnv(string) (string, bool) { return "", false }
func dumb(name string) (string, bool) {
	return map[string]string{"TERM": "dumb"}[name], name == "TERM"
}

// work makes all steps of a progress.
func work(out io.Writer, env func(string) (string, bool), steps int) error {
	p := show.NewProgress(out, env, "reading", steps)
	for range steps {
		p.Step()
	}
	p.End()
	return nil
}

func TestProgressOnTerminal(t *testing.T) {
	got := onTerminal(t, 80, 24, func(out io.Writer) error { return work(out, noEnv, 2) })
	want := "\rreading [###############...............] 1 of 2\x1b[K\rreading [##############################] 2 of 2\x1b[K\r\x1b[K"
	if got != want {
		t.Errorf("printed %q; expected %q", got, want)
	}
	if got := onTerminal(t, 20, 24, func(out io.Writer) error { return work(out, noEnv, 1) }); show.Width(strings.Split(got, "\x1b")[0]) > 20 {
		t.Errorf("the bar does not fit: %q", got)
	}
}

func TestProgressOnDumbTerminal(t *testing.T) {
	got := onTerminal(t, 80, 24, func(out io.Writer) error { return work(out, dumb, 2) })
	if want := "reading: 1 of 2\nreading: 2 of 2\n"; got != want {
		t.Errorf("printed %q; expected %q", got, want)
	}
}

// TestNoColourOnDumbTerminal prints a change, which has a colour on other terminals.
func TestNoColourOnDumbTerminal(t *testing.T) {
	changes := []show.Change{{Symbol: show.Creates, Key: "config/x"}}
	printed := func(env func(string) (string, bool)) string {
		return onTerminal(t, 80, 24, func(out io.Writer) error { return show.Changes(out, env, "Plan", changes, 0) })
	}
	if got := printed(dumb); strings.Contains(got, "\x1b") {
		t.Errorf("TERM=dumb: printed %q", got)
	}
	if got := printed(noEnv); !strings.Contains(got, "\x1b[32m") {
		t.Errorf("printed %q; expected colour", got)
	}
}

// TestProgressOfWaiting has work whose size is known only later.
func TestProgressOfWaiting(t *testing.T) {
	got := onTerminal(t, 80, 24, func(out io.Writer) error {
		p := show.NewProgress(out, noEnv, "waiting", 0)
		p.At(0, 0)
		p.At(1, 3)
		p.At(3, 3)
		p.End()
		return nil
	})
	want := "\rwaiting [##########....................] 1 of 3\x1b[K\rwaiting [##############################] 3 of 3\x1b[K\r\x1b[K"
	if got != want {
		t.Errorf("printed %q; expected %q", got, want)
	}
}

func TestProgressInPipe(t *testing.T) {
	for steps, want := range map[int]string{
		0:   "",
		2:   "reading: 1 of 2\nreading: 2 of 2\n",
		100: "reading: 10 of 100\nreading: 20 of 100\nreading: 30 of 100\nreading: 40 of 100\nreading: 50 of 100\nreading: 60 of 100\nreading: 70 of 100\nreading: 80 of 100\nreading: 90 of 100\nreading: 100 of 100\n",
	} {
		var out bytes.Buffer
		if err := work(&out, noEnv, steps); err != nil || out.String() != want {
			t.Errorf("%d steps: printed %q; expected %q", steps, &out, want)
		}
	}
}
