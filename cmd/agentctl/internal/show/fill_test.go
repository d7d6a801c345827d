package show_test

import (
	"io"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

func TestFill(t *testing.T) {
	long := strings.Repeat("word ", 19) + "end"
	text := long + "\nof it.\n\nshort\nlines stay\n  indented " + long + "\n" + strings.Repeat("x", 50) + " y"
	want := strings.Repeat("word word word word word word word word\n", 2) + "word word word end of it.\n\nshort\nlines stay\n  indented " + long + "\n" + strings.Repeat("x", 50) + "\ny"
	if got := show.Fill(text, 40); got != want {
		t.Errorf("filled to 40 columns:\n%s\nwant\n%s", got, want)
	}
	if got := show.Fill("", 40); got != "" {
		t.Errorf("an empty text became %q", got)
	}
}

func TestHanging(t *testing.T) {
	hanging := func(out io.Writer) error { return show.Hanging(out, "key", 5, strings.Repeat("word ", 20)+"end") }
	var out strings.Builder
	if err := hanging(&out); err != nil || out.String() != "key  "+strings.Repeat("word ", 20)+"end\n" {
		t.Errorf("into a file: %q, %v", out.String(), err)
	}
	want := "key  " + strings.Repeat("word ", 14) + "word\n     " + strings.Repeat("word ", 5) + "end\n"
	if got := onTerminal(t, 80, 24, hanging); got != want {
		t.Errorf("on a terminal: %q, want %q", got, want)
	}
}

func TestBroken(t *testing.T) {
	text := "short\n  key: " + strings.Repeat("word ", 18) + "end\n" + strings.Repeat("x", 90) + " y\n+   " + strings.Repeat("z", 80)
	breaks := func(out io.Writer) error {
		_, err := io.WriteString(out, show.Broken(out, text, 4))
		return err
	}
	var out strings.Builder
	if err := breaks(&out); err != nil || out.String() != text {
		t.Errorf("into a file: %q, %v", out.String(), err)
	}
	want := "short\n  key: " + strings.Repeat("word ", 13) + "word\n      " + strings.Repeat("word ", 4) + "end\n" + strings.Repeat("x", 90) + "\n    y\n+   " + strings.Repeat("z", 80)
	if got := onTerminal(t, 80, 24, breaks); got != want {
		t.Errorf("on a terminal: %q, want %q", got, want)
	}
}
