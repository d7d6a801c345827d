// Package readme reads the values that READMEs show, for tests that apply them. It is test code,
// like package testkit.
package readme

import (
	"os"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// Examples returns the values of each example in YAML of a README, in their order. A README without
// examples, and an example that is not valid, fail the test.
func Examples(t testing.TB, file string) (examples [][]structured.Item) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, rest := range strings.Split(string(text), "```yaml\n")[1:] {
		example, _, _ := strings.Cut(rest, "```")
		items, errs := structured.For(models.BuiltIn()).Parse([]byte(example), document.YAML)
		if len(errs) > 0 || len(items) == 0 {
			t.Fatalf("%s shows %d values, %v", file, len(items), errs)
		}
		for _, item := range items {
			if item.Err != nil {
				t.Fatalf("%s: %v", file, item.Err)
			}
		}
		examples = append(examples, items)
	}
	if len(examples) == 0 {
		t.Fatalf("%s shows no YAML", file)
	}
	return examples
}
