package testkit

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/keyplane/keyplane/internal/scratch"
)

// Netns creates network namespaces with these names and returns their folder. The test
// removes them at its end. The test package must run in scratch.Main.
func Netns(t testing.TB, names ...string) (dir string) {
	t.Helper()
	Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	for _, name := range names {
		if err := scratch.AddNetns(name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := scratch.DelNetns(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		})
	}
	return "/run/netns"
}
