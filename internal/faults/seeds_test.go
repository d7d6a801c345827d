package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/faults/stores"
)

// TestSeeds plays again what has once gone wrong: a file of testdata/seeds each.
func TestSeeds(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/seeds/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d seeds, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			k, f, seed, err := parseSeed(string(text))
			if err != nil {
				t.Fatal(err)
			}
			play(t, k, f, small(), seed)
		})
	}
}

// parseSeed reads "store: NAME", "fault: NAME" and "seed: NUMBER", a line each, and
// leaves out lines that begin with #.
func parseSeed(text string) (k stores.Kind, f Fault, seed uint64, err error) {
	has := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(line, ":"); found && !strings.HasPrefix(line, "#") {
			has[name] = strings.TrimSpace(value)
		}
	}
	i := slices.IndexFunc(stores.Kinds(), func(k stores.Kind) bool { return k.Name == has["store"] })
	j := slices.IndexFunc(faults(), func(f Fault) bool { return f.Name == has["fault"] })
	if i < 0 || j < 0 {
		return k, f, 0, fmt.Errorf("store %q, fault %q: want names of the tables", has["store"], has["fault"])
	}
	seed, err = strconv.ParseUint(has["seed"], 10, 64)
	return stores.Kinds()[i], faults()[j], seed, err
}
