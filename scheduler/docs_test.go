package scheduler_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// A block of code that names its file: ```go examples/skeleton/verbs.go
var block = regexp.MustCompile("(?ms)^```(go|proto) (\\S+)\n(.*?)^```$")

// TestDocsShowWhatIsCompiled holds the code in the documents against the files
// that it is said to be from.
func TestDocsShowWhatIsCompiled(t *testing.T) {
	const root = ".."
	for doc, least := range map[string]int{"docs/write-a-descriptor.md": 15, "docs/extend.md": 5, "scheduler/README.md": 1} {
		text, err := os.ReadFile(filepath.Join(root, doc))
		if err != nil {
			t.Fatal(err)
		}
		blocks := block.FindAllStringSubmatch(string(text), -1)
		if len(blocks) < least {
			t.Errorf("%s has %d blocks of code that name their file, want at least %d", doc, len(blocks), least)
		}
		for _, b := range blocks {
			source, err := os.ReadFile(filepath.Join(root, b[2]))
			if err != nil {
				t.Errorf("%s: %v", doc, err)
				continue
			}
			if !regexp.MustCompile("(?m)^" + regexp.QuoteMeta(b[3])).Match(source) {
				t.Errorf("%s shows what is not in %s:\n%s", doc, b[2], b[3])
			}
		}
	}
}

// TestDocsShowNoOtherCode finds blocks that do not name their file.
func TestDocsShowNoOtherCode(t *testing.T) {
	for _, doc := range []string{"docs/write-a-descriptor.md", "docs/extend.md", "scheduler/README.md"} {
		text, err := os.ReadFile(filepath.Join("..", doc))
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile("(?m)^```(go|proto)$").Find(text); m != nil {
			t.Errorf("%s has a block of code that does not name its file", doc)
		}
	}
}
