package links_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/links"
)

func TestPlaces(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir+"/releases/1/network", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/releases/1/keys.db", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"current": "releases/1", "latest": dir + "/current", "releases/up": "../latest/network", "circle": "circle", "lost": "nowhere/else",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"releases/1/keys.db": "releases/1/keys.db",
		"releases/1/":        "releases/1",
		"current":            "current releases/1",
		"current/keys.db":    "current releases/1/keys.db",
		"latest/network":     "latest current releases/1/network",
		"releases/up/a.json": "releases/up latest current releases/1/network/a.json",
		"current/absent/a":   "current releases/1/absent",
		"current/keys.db/a":  "current releases/1/keys.db",
		"lost/a":             "lost nowhere",
	} {
		var got []string
		for _, place := range links.Places(filepath.Join(dir, path)) {
			got = append(got, strings.TrimPrefix(place, dir+"/"))
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
	if got := links.Places(dir + "/circle"); len(got) > 50 {
		t.Errorf("a link to itself: %d places", len(got))
	}
}

func TestPlacesOfARelativePath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if got := links.Places("a/b"); !slices.Equal(got, []string{dir + "/a"}) {
		t.Errorf("got %v", got)
	}
}
