package documents_test

import (
	"os"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/models"
)

// TestSyntaxErrorsNameTheirFile reads a folder of several files and several documents. The line is
// that of the file, not that of the joined text.
func TestSyntaxErrorsNameTheirFile(t *testing.T) {
	t.Chdir(t.TempDir())
	long := "linuxConfig:\n  interfaces:\n" + strings.Repeat("    - {name: a, type: DUMMY}\n", 20)
	for name, text := range map[string]string{"a.yaml": long, "b.yaml": long + "---\n" + long + "   x: [1\n", "c.json": "{\n  \"a\": *b\n}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := documents.Read(nil, []string{"."})
	want := "b.yaml:46:4: did not find expected key while parsing a block mapping that begins in line 25\nc.json:2:8: unknown anchor 'b' referenced"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestFileNamesArePrintable has a file whose name holds a command to a terminal and forges a line.
func TestFileNamesArePrintable(t *testing.T) {
	t.Chdir(t.TempDir())
	const name = "a\x1b[2J\nb.yaml: ok.yaml"
	for text, want := range map[string]string{
		"linuxConfig:\n  interfaces:\n    - {name: a, type: DUMMY, mtuu: 1}\n": `a\x1b[2J\nb.yaml: ok.yaml:3:`,
		"linuxConfig: [\n": `a\x1b[2J\nb.yaml: ok.yaml:`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		docs, err := documents.ReadAny(nil, []string{"."})
		if err != nil {
			t.Fatal(err)
		}
		found := docs.Check(models.BuiltIn())
		if len(found) != 1 || !strings.HasPrefix(found[0].String(), want) {
			t.Errorf("findings %v, want one that begins with %s", found, want)
		}
		if _, err := documents.Read(nil, []string{"."}); err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %q, want one that begins with %s", err, want)
		}
	}
}
