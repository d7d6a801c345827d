package filedb_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// TestFilesThatVanish takes files away. A file that vanishes alone says that its key was
// deleted. Of files that vanish together, or with their folder, the watch says nothing:
// it ends, and the next listing lacks them.
func TestFilesThatVanish(t *testing.T) {
	remove := func(names ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, c := range []struct {
		what    string
		do      func(t *testing.T, dir string)
		deleted string
		ended   error
		lists   int
		other   bool // the listing is of another store
	}{
		{what: "one", do: remove("0.json"), deleted: "0", lists: 4},
		{what: "some at once", do: remove("0.json", "1.json"), ended: filedb.ErrVanished, lists: 3},
		{what: "all at once", do: remove("0.json", "1.json", "2.json", "3.json", "4.json"), ended: filedb.ErrVanished},
		{what: "the folder, for one with one file less", do: func(t *testing.T, dir string) {
			if err := os.Rename(dir, dir+".old"); err != nil {
				t.Fatal(err)
			}
			fill(t, dir, 1, 5)
		}, ended: filedb.ErrVanished, lists: 4, other: true},
		{what: "the folder, for one with something else in a file", do: func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil { // whose inode may be used again
				t.Fatal(err)
			}
			fill(t, dir, 1, 5)
			write(t, filepath.Join(dir, "0.json"), `{"data":[{"key":"/x/config/9","value":{}}]}`)
		}, ended: filedb.ErrVanished, lists: 5, other: true},
		{what: "the folder", do: func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}, ended: filedb.ErrGone},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "network")
			fill(t, dir, 0, 5)
			db, err := filedb.New(filedb.Config{Paths: []string{dir}}, "/x/", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			before := conformance.ListingOf(t, db, "/x/")
			deleted, ended := firstRemoval(t, db, func() { c.do(t, dir) })
			if deleted != c.deleted || !errors.Is(ended, c.ended) {
				t.Errorf("%q was deleted, and the watch ended with %v; want %q and %v", deleted, ended, c.deleted, c.ended)
			}
			after := conformance.ListingOf(t, db, "/x/")
			if after.Keys != c.lists || errors.Is(after.Succeeds(before), kvdbsync.ErrOtherStore) != c.other {
				t.Errorf("then %d keys are listed, %v; want %d", after.Keys, after.Succeeds(before), c.lists)
			}
		})
	}
}

// TestKeysThatMove moves keys between files, which a tool writes one after the other. Nothing is removed and made again, and
// what else changes in a file comes together with the end of the key there.
func TestKeysThatMove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name string, keys ...string) {
		var pairs []string
		for _, key := range keys {
			key, value, _ := strings.Cut(key, "=")
			pairs = append(pairs, fmt.Sprintf(`{"key":"/x/config/%s","value":{"n":"%s"}}`, key, value))
		}
		write(t, filepath.Join(dir, name), `{"data":[`+strings.Join(pairs, ",")+`]}`)
	}
	put("a.json", "1", "2", "3")
	put("b.json", "4")
	// The time does not end before the test.
	db, err := filedb.New(filedb.Config{Paths: []string{dir}, VanishGrace: time.Hour}, "/x/", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		do   func()
		want string // the events until the mark
	}{
		{func() { put("a.json", "1", "3=new") }, "mark1"}, // 2 is nowhere
		{func() { put("b.json", "4", "2") }, "3 mark2"},
		{func() { put("a.json", "3=new") }, "mark3"}, // 1 is nowhere
		{func() { put("new.json", "1") }, "mark4"},
		{func() { put("b.json", "2=other") }, "mark5"}, // 4 is nowhere, for ever
	}
	var got []string
	step := 0
	for b, err := range db.Watch(t.Context(), "/x/config/") {
		if err != nil {
			t.Fatal(err)
		}
		marked := b.Synced
		for _, e := range b.Events {
			key := strings.TrimPrefix(e.Key, "/x/config/")
			if e.Value == nil {
				key = "-" + key
			}
			marked = marked || strings.HasPrefix(key, "mark")
			if !b.Synced {
				got = append(got, key)
			}
		}
		if !marked {
			continue
		}
		if step > 0 {
			if text := strings.Join(got, " "); text != steps[step-1].want {
				t.Errorf("step %d: %s, want %s", step, text, steps[step-1].want)
			}
		}
		if got = nil; step == len(steps) {
			return
		}
		steps[step].do()
		step++
		// A key of its own file says that the change before it was seen, since each look goes through all that is noticed.
		put(fmt.Sprintf("mark%d.json", step), fmt.Sprint("mark", step))
	}
}

// fill makes a folder with a file for each number.
func fill(t *testing.T, dir string, from, to int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := from; i < to; i++ {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.json", i)), fmt.Sprintf(`{"data":[{"key":"/x/config/%d","value":{}}]}`, i))
	}
}

// firstRemoval watches, calls do once the watch is synced, and returns the keys that the
// first removal names, or why the watch ended before.
func firstRemoval(t *testing.T, db *filedb.DB, do func()) (keys string, ended error) {
	t.Helper()
	for b, err := range db.Watch(t.Context(), "/x/config/") {
		if err != nil {
			return "", err
		}
		if b.Synced {
			do()
			continue
		}
		gone := slices.DeleteFunc(b.Events, func(e kvdbsync.Event) bool { return e.Value != nil })
		for _, e := range gone {
			keys += strings.TrimPrefix(e.Key, "/x/config/")
		}
		if keys != "" {
			return keys, nil
		}
	}
	return "", nil
}
