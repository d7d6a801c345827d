package statestore_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/statestore"
)

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
