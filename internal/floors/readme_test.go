package floors

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEveryConnectorAndDescriptorHasAREADME(t *testing.T) {
	for _, p := range packages(t) {
		if !isPart(p.Dir) {
			continue
		}
		if _, err := os.Stat(filepath.Join("../..", p.Dir, "README.md")); err != nil {
			t.Errorf("%s has no README.md: names, keys, an example that a test runs, notes", p.Dir)
		}
	}
}

// isPart tells the folders that a user meets by name: connectors/etcd, descriptors/linux/l3.
func isPart(dir string) bool {
	elements := strings.Split(dir, "/")
	if slices.Contains(elements, "internal") {
		return false
	}
	return elements[0] == "connectors" && len(elements) == 2 || elements[0] == "descriptors" && len(elements) == 3
}
