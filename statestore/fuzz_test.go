package statestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/keyplane/keyplane/statestore"
)

// FuzzJournal opens files of any content. It never fails, and goes on from what it finds.
func FuzzJournal(f *testing.F) {
	dir := f.TempDir()
	s := open(f, dir, statestore.Options{})
	save(f, s, "a=1 b=2")
	save(f, s, "a=")
	whole, err := os.ReadFile(filepath.Join(dir, "journal.1"))
	must(f, err)
	f.Add(whole)
	f.Add(whole[:40])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "journal.1"), content, 0o600))
		s := open(t, dir, statestore.Options{})
		before := remembered(s)
		save(t, s, "new=1")
		must(t, s.Close())
		after := remembered(open(t, dir, statestore.Options{}))
		if before["new"] = "1"; len(after) != len(before) || after["new"] != "1" {
			t.Errorf("%d keys, then %d", len(before), len(after))
		}
	})
}
