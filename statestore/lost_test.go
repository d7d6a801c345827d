package statestore_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/statestore"
)

// The ways in which somebody takes the files of a running program.
var losses = map[string]func(t *testing.T, dir string){
	"the folder is removed":       func(t *testing.T, dir string) { removeAll(t, dir) },
	"one above it is removed":     func(t *testing.T, dir string) { removeAll(t, filepath.Dir(dir)) },
	"the folder is moved":         func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+"-away")) },
	"one above it is moved":       func(t *testing.T, dir string) { must(t, os.Rename(filepath.Dir(dir), filepath.Dir(dir)+"-away")) },
	"the journals are removed":    func(t *testing.T, dir string) { removeFiles(t, dir, "journal.*") },
	"the snapshot is removed":     func(t *testing.T, dir string) { removeFiles(t, dir, "snapshot") },
	"the mark is removed":         func(t *testing.T, dir string) { removeFiles(t, dir, "complete") },
	"a file replaces the journal": func(t *testing.T, dir string) { replaceFiles(t, dir, "journal.*") },
	"another state is put there": func(t *testing.T, dir string) {
		other := open(t, dir+"-other", statestore.Options{CompactAt: 1})
		for range 9 {
			must(t, other.Save(maps.All(changes("foreign=1"))))
			must(t, statestore.Compact(other))
		}
		must(t, other.Close())
		must(t, os.Rename(dir, dir+"-away"))
		// Where a watch has made the folder again in between, it is not empty.
		if err := os.Rename(dir+"-other", dir); !errors.Is(err, fs.ErrExist) {
			must(t, err)
		}
	},
}

// removeAll removes a folder at once, so that nothing is made again in it meanwhile.
func removeAll(t *testing.T, dir string) {
	t.Helper()
	must(t, os.Rename(dir, dir+"-away"))
	must(t, os.RemoveAll(dir+"-away"))
}

func removeFiles(t *testing.T, dir, pattern string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	must(t, err)
	if len(paths) == 0 {
		t.Fatalf("%s has no %s", dir, pattern)
	}
	for _, path := range paths {
		must(t, os.Remove(path))
	}
}

func replaceFiles(t *testing.T, dir, pattern string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	must(t, err)
	for _, path := range paths {
		must(t, os.WriteFile(path+".new", nil, 0o600))
		must(t, os.Rename(path+".new", path))
	}
}

// withHistory opens a Store that has a snapshot, a journal before the present one, and the present one.
func withHistory(t *testing.T, dir string, opts statestore.Options) *statestore.Store {
	opts.CompactAt = 1
	s := open(t, dir, opts)
	must(t, s.Save(maps.All(changes("a=1 b=1 c=1"))))
	must(t, statestore.Compact(s))
	must(t, s.Save(maps.All(changes("b=2 c="))))
	return s
}

// Whatever somebody does to the files, what is saved afterwards and before is there at the next start, and what was
// forgotten is not. Somebody is told.
func TestFilesThatSomebodyTakes(t *testing.T) {
	for name, lose := range losses {
		for _, verified := range []bool{false, true} {
			// A change alone compares the journal: nobody removes the snapshot and leaves it, and one look per change is enough.
			if !verified && (strings.Contains(name, "snapshot") || strings.Contains(name, "mark")) {
				continue
			}
			t.Run(name+map[bool]string{true: ", and a watch sees it", false: ", and the next change sees it"}[verified], func(t *testing.T) {
				log := &logbook{}
				dir := filepath.Join(t.TempDir(), "label", "intent")
				s := withHistory(t, dir, log.options())
				lose(t, dir)
				if verified {
					must(t, s.Verify())
				}
				must(t, s.Save(maps.All(changes("d=4"))))
				if said := strings.Contains(log.String(), "level=ERROR"); said == strings.Contains(name, "mark") {
					t.Errorf("an error was logged: %t\n%s", said, log)
				}
				expectAfterKill(t, dir, "a=1 b=2 d=4")
				must(t, s.Save(maps.All(changes("a= e=5"))))
				must(t, statestore.Compact(s))
				must(t, s.Close())
				expectAfterKill(t, dir, "b=2 d=4 e=5")
			})
		}
	}
}

// expectAfterKill opens a copy of the folder, as after a kill.
func expectAfterKill(t *testing.T, dir, want string) {
	t.Helper()
	if got, err := afterKill(t, dir); err != nil || got != want {
		t.Errorf("after a kill it has %q, want %q; %v", got, want, err)
	}
}

// afterKill returns the content of a copy of the folder, and why it is not complete.
func afterKill(t *testing.T, dir string) (content string, err error) {
	at := t.TempDir()
	if err := os.CopyFS(at, os.DirFS(dir)); err != nil {
		return "", err // it is about to be made again
	}
	s := open(t, at, statestore.Options{})
	defer s.Close()
	var all []string
	for key, value := range s.Load() {
		all = append(all, key+"="+string(value))
	}
	slices.Sort(all)
	if len(all) == 0 {
		return "", errors.New("it is empty")
	}
	return strings.Join(all, " "), s.Stale()
}

// While the folder cannot be made again, changes are not acknowledged by Record, and not lost by Save.
func TestFolderThatCannotBeMadeAgain(t *testing.T) {
	above := filepath.Join(t.TempDir(), "label")
	dir := filepath.Join(above, "intent")
	s := withHistory(t, dir, statestore.Options{})
	must(t, os.RemoveAll(above))
	must(t, os.WriteFile(above, nil, 0o600))
	if err := s.Record(maps.All(changes("d=4"))); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("recording: %v", err)
	}
	must(t, s.Save(maps.All(changes("e=5"))))
	must(t, os.Remove(above))
	must(t, s.Record(maps.All(changes("f=6"))))
	expectAfterKill(t, dir, "a=1 b=2 e=5 f=6")
}

// A watch calls at once, for each way of losing files.
func TestWatch(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "label", "intent")
			s := withHistory(t, dir, statestore.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 2)
			watched := make(chan bool, 1)       // has a token when the files were looked at
			go func() { ended <- s.Run(ctx) }() // which tries again where files are lost during a look
			go func() {
				ended <- statestore.Watch(ctx, []string{dir}, func() {
					_ = s.Verify()
					select {
					case watched <- true:
					default:
					}
				})
			}()
			<-watched
			for range 2 { // the folder that was made again is watched too
				lose(t, dir)
				late := time.After(testkit.Patience)
				for content, err := afterKill(t, dir); err != nil || content != "a=1 b=2"; content, err = afterKill(t, dir) {
					select {
					case <-watched:
					case <-time.After(50 * time.Millisecond): // Run tries again by itself
					case <-late:
						t.Fatalf("nobody has looked: %q, %v", content, err)
					}
				}
				must(t, os.RemoveAll(dir+"-other"))
				must(t, os.RemoveAll(dir+"-away"))
				must(t, os.RemoveAll(filepath.Dir(dir)+"-away"))
			}
			cancel()
			must(t, errors.Join(<-ended, <-ended))
			expectAfterKill(t, dir, "a=1 b=2")
		})
	}
}
