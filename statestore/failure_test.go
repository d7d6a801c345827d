package statestore_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/statestore"
)

// Linux reports once that a disk has not taken what was written: another attempt to sync succeeds, although it is lost. So all
// is written anew.
func TestWhatTheDiskHasRefusedIsWrittenAnew(t *testing.T) {
	refusals := map[string]func(*testing.T, *statestore.Store){
		"sync": func(t *testing.T, s *statestore.Store) {
			if err := s.Sync(); !errors.Is(err, unix.EIO) {
				t.Errorf("got %v, want the error of the disk", err)
			}
		},
		"rotation": func(t *testing.T, s *statestore.Store) { must(t, statestore.Compact(s)) },
	}
	for name, refused := range refusals {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			s := open(t, dir, statestore.Options{CompactAt: 10})
			save(t, s, "a=1 b=2")
			files, err := filepath.Glob(filepath.Join(dir, "journal.*"))
			if err != nil || len(files) != 1 {
				t.Fatalf("journals %q: %v", files, err)
			}
			statestore.RefuseSync(unix.EIO)
			refused(t, s)
			if s.Failure() == nil || exists(filepath.Join(dir, "complete")) {
				t.Error("the state counts as complete although the disk has refused it")
			}
			save(t, s, "c=3")
			must(t, s.Sync())
			must(t, os.RemoveAll(files[0])) // as a disk that has lost it
			expect(t, open(t, killed(t, dir), statestore.Options{}), "a=1 b=2 c=3")
			must(t, s.Close())
		})
	}
}

// The last attempt is that of Close.
func TestRefusedAtTheEndIsIncomplete(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, statestore.Options{})
	save(t, s, "a=1")
	statestore.RefuseSync(unix.EIO)
	if err := s.Close(); !errors.Is(err, unix.EIO) {
		t.Errorf("got %v, want the error of the disk", err)
	}
	if exists(filepath.Join(dir, "complete")) {
		t.Error("the state counts as complete although the disk has refused it")
	}
}

// A write that neither succeeds nor fails is told, by Failure and in the log, and ends when the disk answers.
func TestDiskThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s, err := statestore.Open(t.TempDir(), statestore.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		answers, saved := make(chan struct{}), make(chan error)
		go func() {
			saved <- s.Save(func(yield func(string, []byte) bool) { // the Store reads this as it writes
				<-answers
				yield("key", []byte("value"))
			})
		}()
		<-time.After(2 * time.Second)
		if err := s.Failure(); err != nil {
			t.Errorf("after two seconds: %v", err)
		}
		<-time.After(8 * time.Second)
		if err := s.Failure(); !errors.Is(err, statestore.ErrSilent) || !strings.Contains(err.Error(), "for 10s") {
			t.Errorf("after ten seconds: %v", err)
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d errors in the log, want one:\n%s", n, &log)
		}
		close(answers)
		if err := <-saved; err != nil {
			t.Error(err)
		}
		if err := s.Failure(); err != nil {
			t.Errorf("when the disk answers again: %v", err)
		}
		if !strings.Contains(log.String(), "the disk of the state answers again") {
			t.Errorf("the log does not say that the disk answers again:\n%s", &log)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
