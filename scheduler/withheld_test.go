package scheduler_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/scheduler"
)

// What has not begun when it is withheld does not begin, also where several values are created together. It is tried again
// when it is declared again.
func TestWithheldAmongValuesThatAreCreatedTogether(t *testing.T) {
	const n = 1000
	synctest.Test(t, func(t *testing.T) {
		s, south := scheduler.New(scheduler.Options{Concurrency: 2}), &together{}
		south.register(t, s)
		defer begin(t, s)()
		withheld := errors.New("another has the label")
		until := time.Now().Add(2500 * time.Millisecond)
		changes := interfacesNamed(t, s, n)
		_, err := s.Commit(t.Context(), scheduler.Txn{Changes: changes, Withheld: func(string) error {
			if time.Now().After(until) {
				return withheld
			}
			return nil
		}})
		names, _ := south.all()
		var failures *scheduler.TxnError
		if len(names) == 0 || !errors.As(err, &failures) || len(failures.Failed) != n-len(names) || !errors.Is(err, withheld) {
			t.Errorf("%d of %d were created: %v", len(names), n, err)
		}
		<-time.After(time.Hour)
		if later, _ := south.all(); len(later) != len(names) {
			t.Errorf("%d were created later", len(later)-len(names))
		}
		mustCommit(t, s, scheduler.Txn{Changes: changes})
		if names, _ := south.all(); len(names) != n {
			t.Errorf("%d of %d were created in the end", len(names), n)
		}
	})
}
