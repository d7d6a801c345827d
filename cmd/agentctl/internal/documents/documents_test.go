package documents_test

import (
	"os"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
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
