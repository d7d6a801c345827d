package floors

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each fuzz test has seeds: without them, a search of 30 s with nothing cached begins with the empty input.
func TestFuzzTestsHaveSeeds(t *testing.T) {
	found := 0
	for _, path := range filesOf(t, func(path string) bool { return strings.HasSuffix(path, "_test.go") }) {
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range regexp.MustCompile(`(?ms)^func (Fuzz\w+)\(f \*testing\.F\) \{\n(.*?)^\}`).FindAllStringSubmatch(string(text), -1) {
			found++
			_, err := os.Stat(filepath.Join("../..", filepath.Dir(path), "testdata/fuzz", f[1]))
			if err != nil && !strings.Contains(f[2], "f.Add(") {
				t.Errorf("%s: %s has neither f.Add nor a folder in testdata/fuzz", path, f[1])
			}
		}
	}
	if found < 35 {
		t.Errorf("only %d fuzz tests were found: did their form change?", found)
	}
}
