package show_test

import (
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
