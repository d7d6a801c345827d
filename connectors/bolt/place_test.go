package bolt_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// makeFile makes a Bolt file with one key.
func makeFile(t *testing.T, path, value string) {
	t.Helper()
	raw := openRaw(t, path)
	change(t, raw, "k", []byte(value))
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// expectValue fails unless the DB has it.
func expectValue(t *testing.T, db *bolt.DB, want string) {
	t.Helper()
	if got, err := db.Get(t.Context(), "k"); string(got) != want || err != nil {
		t.Errorf("k = %q, %v; want %q", got, err, want)
	}
}

// replacements put another file into the place of the one that is open.
func replacements() map[string]func(t *testing.T, path string) {
	return map[string]func(t *testing.T, path string){
		"renamed over": func(t *testing.T, path string) {
			makeFile(t, path+".new", "2")
			rename(t, path+".new", path)
		},
		"folder swapped": func(t *testing.T, path string) {
			dir := filepath.Dir(path)
			if err := os.Mkdir(dir+".new", 0o755); err != nil {
				t.Fatal(err)
			}
			makeFile(t, filepath.Join(dir+".new", filepath.Base(path)), "2")
			rename(t, dir, dir+".old")
			rename(t, dir+".new", dir)
		},
		"moved away and back as another": func(t *testing.T, path string) {
			rename(t, path, path+".old")
			makeFile(t, path+".new", "2")
			rename(t, path+".new", path)
		},
	}
}

func TestAWatchNoticesThatItsFileIsReplaced(t *testing.T) {
	for name, replace := range replacements() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db", "keys.db")
			db, _ := open(t, bolt.Config{Path: path})
			if err := db.Put(t.Context(), "k", []byte("1")); err != nil {
				t.Fatal(err)
			}
			s := follow(t, db)
			s.await("k", "1")
			before := conformance.ListingOf(t, db, "")
			replace(t, path)
			s.await("k", "2")
			if err := conformance.ListingOf(t, db, "").Succeeds(before); !errors.Is(err, kvdbsync.ErrOtherStore) {
				t.Errorf("the listing of another file: %v", err)
			}
			if err := db.Put(t.Context(), "k", []byte("3")); err != nil {
				t.Fatal(err)
			}
			s.await("k", "3")
			if h := s.Health(); h.Gaps == 0 || !errors.Is(h.LastErr, bolt.ErrReplaced) && !errors.Is(h.LastErr, bolt.ErrGone) {
				t.Errorf("%d gaps, for %v", h.Gaps, h.LastErr)
			}
		})
	}
}

func TestALinkThatLeadsElsewhere(t *testing.T) {
	dir := t.TempDir()
	makeFile(t, dir+"/one.db", "1")
	makeFile(t, dir+"/two.db", "2")
	for _, place := range []string{"here", "elsewhere"} {
		link := filepath.Join(t.TempDir(), "keys.db")
		if err := os.Symlink(dir+"/one.db", link); err != nil {
			t.Fatal(err)
		}
		db, _ := open(t, bolt.Config{Path: link})
		s := follow(t, db)
		s.await("k", "1")
		if place == "here" {
			if err := os.Symlink(dir+"/two.db", link+".new"); err != nil {
				t.Fatal(err)
			}
			rename(t, link+".new", link)
		} else {
			rename(t, dir+"/two.db", dir+"/one.db")
		}
		s.await("k", "2")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A deployment keeps its releases and swaps a link above the file.
func TestALinkAboveTheFileIsSwapped(t *testing.T) {
	dir := t.TempDir()
	for _, release := range []string{"1", "2"} {
		if err := os.MkdirAll(filepath.Join(dir, "releases", release), 0o755); err != nil {
			t.Fatal(err)
		}
		makeFile(t, filepath.Join(dir, "releases", release, "keys.db"), release)
		if err := os.Symlink("releases/"+release, filepath.Join(dir, "current"+release)); err != nil {
			t.Fatal(err)
		}
	}
	current := filepath.Join(dir, "current")
	rename(t, current+"1", current)
	db, _ := open(t, bolt.Config{Path: current + "/keys.db"})
	s := follow(t, db)
	s.await("k", "1")
	rename(t, current+"2", current)
	s.await("k", "2")
}

// What is written after the file was replaced is in the new one, also where nobody watches.
func TestAUseNoticesThatTheFileIsReplaced(t *testing.T) {
	db, path := open(t, bolt.Config{})
	if err := db.Put(t.Context(), "k", []byte("1")); err != nil {
		t.Fatal(err)
	}
	replacements()["renamed over"](t, path)
	expectValue(t, db, "2")
	replacements()["renamed over"](t, path)
	if err := db.Put(t.Context(), "other", nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	expectValue(t, db, "2")
	if _, err := db.Get(t.Context(), "other"); err != nil {
		t.Errorf("what was put went elsewhere: %v", err)
	}
}

// A file that is gone may be about to be copied there: nothing is made in its place.
func TestAFileThatIsGoneIsWaitedFor(t *testing.T) {
	db, path := open(t, bolt.Config{})
	if err := db.Put(t.Context(), "k", []byte("1")); err != nil {
		t.Fatal(err)
	}
	s := follow(t, db)
	s.await("k", "1")
	rename(t, path, path+".away")
	s.awaitLost(bolt.ErrGone)
	err := db.Put(t.Context(), "k", []byte("x"))
	if !errors.Is(err, bolt.ErrGone) || !strings.HasPrefix(err.Error(), path+": is gone: put it back") {
		t.Errorf("put: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := db.Put(t.Context(), "k", []byte("x")); !errors.Is(err, bolt.ErrDamaged) {
		t.Errorf("put into a file that is about to be written: %v", err)
	}
	rename(t, path+".away", path)
	if err := db.Put(t.Context(), "k", []byte("2")); err != nil {
		t.Fatal(err)
	}
	s.await("k", "2")
}

func TestASessionIsLostWithItsFile(t *testing.T) {
	db, path := open(t, bolt.Config{})
	s, err := db.Session(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	follow(t, db).await()
	status := []kvdbsync.Pair{{Key: "status", Value: []byte("{}")}}
	if err := s.Apply(t.Context(), status); err != nil {
		t.Fatal(err)
	}
	replacements()["renamed over"](t, path)
	select {
	case <-s.Lost():
	case <-time.After(testkit.Patience):
		t.Fatal("the session does not know that it is lost")
	}
	if err := s.Apply(t.Context(), status); !errors.Is(err, kvdbsync.ErrSessionOver) {
		t.Errorf("a lost session wrote: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// What an agent that died has left is found by the next.
func TestTheNextSessionFindsWhatWasLeft(t *testing.T) {
	db, path := open(t, bolt.Config{})
	s, err := db.Session(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), []kvdbsync.Pair{{Key: "status/a", Value: []byte("1")}}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil { // and no Close of the session
		t.Fatal(err)
	}
	later, _ := open(t, bolt.Config{Path: path})
	next, err := later.Session(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if pairs, err := next.List(t.Context(), "status/"); err != nil || len(pairs) != 1 || string(pairs[0].Value) != "1" {
		t.Errorf("%q, %v", pairs, err)
	}
	if err := next.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
