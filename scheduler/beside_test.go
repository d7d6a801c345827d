package scheduler_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// many is enough that the verbs of one transaction take minutes.
const many = 3000

// large declares many things in the background, whose verbs take 100 ms each.
func large(t *testing.T, b *tar, s *scheduler.Scheduler) {
	b.slow = 100 * time.Millisecond
	var txn scheduler.Txn
	for i := range many {
		txn.Changes = append(txn.Changes, scheduler.Want(fmt.Sprintf("thing/%04d", i), wrapperspb.String("1")))
	}
	must(t, s.Submit(t.Context(), txn))
	<-time.After(time.Second)
}

// TestSmallTransactionsDoNotWaitForALargeOne commits values one above the other, on the connection on which a large
// transaction works, whether that succeeds or fails.
func TestSmallTransactionsDoNotWaitForALargeOne(t *testing.T) {
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused %t", refused), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTar()
				if refused {
					b.refuses = "thing/"
				}
				s, stop := b.begin(t, scheduler.Options{Concurrency: 4})
				defer stop()
				large(t, b, s)
				for i := range 10 {
					begun := time.Now()
					low, high := fmt.Sprintf("other/%d", i), fmt.Sprintf("other/%d-high", i)
					must(t, declare(t, s, low, "1", high, "1>"+low))
					// Two verbs, each behind those that have begun, which are 16 for each that may run at once.
					if took := time.Since(begun); took > 5*time.Second {
						t.Errorf("transaction %d took %v", i, took)
					}
				}
			})
		})
	}
}

// TestDeletionsDoNotWaitForALargeCreation removes a value while many are created on its connection.
func TestDeletionsDoNotWaitForALargeCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{Concurrency: 4})
		defer stop()
		must(t, declare(t, s, "other/a", "1"))
		large(t, b, s)
		begun := time.Now()
		must(t, declare(t, s, "other/a", ""))
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("the deletion took %v", took)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if got := len(b.stands); got >= many {
			t.Errorf("all of %d values were created before", got)
		}
	})
}

// TestLargeRetriesAreNotPlanned: all other work would wait for the plan.
func TestLargeRetriesAreNotPlanned(t *testing.T) {
	for count, planned := range map[int]bool{1000: true, 1001: false} {
		synctest.Test(t, func(t *testing.T) {
			b := newTar()
			b.refuses = "thing/"
			s, stop := b.begin(t, scheduler.Options{})
			defer stop()
			var txn scheduler.Txn
			for i := range count {
				txn.Changes = append(txn.Changes, scheduler.Want(fmt.Sprintf("thing/%04d", i), wrapperspb.String("1")))
			}
			if _, err := s.Commit(t.Context(), txn); err == nil {
				t.Fatal("nothing has failed")
			}
			rec, err := s.Retry(t.Context())
			if err == nil || rec.Executed.Len() != count || (rec.Planned.Len() > 0) != planned {
				t.Errorf("the retry of %d values: %v, %d operations and %d planned", count, err, rec.Executed.Len(), rec.Planned.Len())
			}
		})
	}
}

var errRefusedByTar = errors.New("refused")
