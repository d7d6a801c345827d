package document_test

import (
	"testing"

	"github.com/keyplane/keyplane/models/structured/document"
)

func TestUnfinished(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb:\n":              `2:1: ends with "b", which has no value, as if it were cut off there: expected a value, [], {} or null`,
		"a:\n  - name: x\n    y:": `3:5: ends with "y", which has no value, as if it were cut off there: expected a value, [], {} or null`,
		"a:\n  - name:\n\n":       `2:5: ends with "name", which has no value, as if it were cut off there: expected a value, [], {} or null`,
		"a:\n  - 1\n  -\n":        `3: ends with a "-" that has no value, as if it were cut off there: expected a value, or null`,
		"a:":                      `1:1: ends with "a", which has no value, as if it were cut off there: expected a value, [], {} or null`,
		"a: 1\n---\n":             `2:1: ends with "---", as if it were cut off there`,
		"---\n":                   `1:1: ends with "---", as if it were cut off there`,
		"---\na:\n":               `2:1: ends with "a", which has no value, as if it were cut off there: expected a value, [], {} or null`,
		"a: 1\nb:\n...\n":         "",
		"a: 1\nb: # none\n":       "",
		"a: 1\nb:\n  # - c\n":     "",
		"a: 1\nb: null\n":         "",
		"a: 1\nb: ~\n":            "",
		"a: {b: }":                "",
		"a: [x, {b:}]":            "",
		"a: |\n  text:\n":         "",
		"a: 'b:'":                 "",
		"b:\na: 1\n":              "",
		"# nothing:":              "",
		"":                        "",
	} {
		nodes, err := document.Read([]byte(text), document.YAML)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got := ""
		if err := document.Unfinished([]byte(text), nodes); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestEndingOf(t *testing.T) {
	for text, want := range map[string]document.Ending{
		"": document.EndsLine, "\n": document.EndsLine, "a: 1\n": document.EndsLine, "a: 1\n\n": document.EndsLine,
		"a: 1": document.EndsInLine, "a: 1\n  ": document.EndsInLine, "a: 1\n...\n": document.EndsComplete, "a: 1\n...": document.EndsComplete,
	} {
		if got := document.EndingOf([]byte(text), document.YAML); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]document.Ending{"": document.EndsLine, " ": document.EndsLine, "{}": document.EndsComplete} {
		if got := document.EndingOf([]byte(text), document.JSONText); got != want {
			t.Errorf("JSON %q: %d, want %d", text, got, want)
		}
	}
}
