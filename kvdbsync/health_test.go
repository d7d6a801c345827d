package kvdbsync_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

func TestHealthTellsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		m.Txn(put("a", "1"), put("b", "1"))
		s := run(t, kvdbsync.Options{Connector: &m, AntiEntropy: -1})
		expectWaiting := func(keys int, lag, waited time.Duration) {
			t.Helper()
			synctest.Wait()
			if h := s.Health(); h.Waiting != keys || h.Lag != lag || h.Waited != waited {
				t.Errorf("%d keys wait since %v, those taken did %v; want %d, %v, %v", h.Waiting, h.Lag, h.Waited, keys, lag, waited)
			}
		}
		expectWaiting(2, 0, 0)
		elapse(time.Second)
		expectWaiting(2, time.Second, 0)
		expect(t, s, "a=1 b=1 resynced")
		expectWaiting(0, 0, time.Second)
		elapse(time.Second)
		expect(t, s, "nothing")
		expectWaiting(0, 0, time.Second)
		m.Txn(put("a", "2"))
		elapse(2 * time.Second)
		m.Txn(put("a", "3"), put("b", "2")) // which have waited less
		expectWaiting(2, 2*time.Second, time.Second)
		expect(t, s, "a=3 b=2")
		expectWaiting(0, 0, 2*time.Second)
	})
}

// While a store is listed, page by page, its source tells how far that has come.
func TestHealthTellsHowFarAListingHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := make(chan kvdbsync.Batch)
		cut := errors.New("cut")
		s := run(t, kvdbsync.Options{AntiEntropy: -1, Connector: watching(func(yield func(kvdbsync.Batch, error) bool) {
			for b := range pages {
				if b.Rev < 0 {
					yield(kvdbsync.Batch{}, cut)
					return
				}
				if !yield(b, nil) {
					return
				}
			}
		})})
		page := func(rev int64, synced bool, keys ...string) {
			b := kvdbsync.Batch{Rev: rev, Synced: synced}
			for _, key := range keys {
				b.Events = append(b.Events, put(key, "1"))
			}
			pages <- b
			synctest.Wait()
		}
		expect := func(state kvdbsync.State, listed, keys int) {
			t.Helper()
			if h := s.Health(); h.State != state || h.Listed != listed || h.Keys != keys {
				t.Errorf("%v, %d listed, %d keys; want %v, %d, %d", h.State, h.Listed, h.Keys, state, listed, keys)
			}
		}
		defer close(pages)
		page(1, false, "a", "b")
		expect(kvdbsync.Syncing, 2, 0)
		page(1, false, "c")
		expect(kvdbsync.Syncing, 3, 0)
		pages <- kvdbsync.Batch{Rev: -1}
		synctest.Wait()
		expect(kvdbsync.Connecting, 0, 0)
		page(1, false, "a")
		expect(kvdbsync.Syncing, 1, 0)
		page(1, true, "b")
		expect(kvdbsync.Synced, 0, 2)
		page(2, false, "c")
		expect(kvdbsync.Synced, 0, 3)
	})
}

// watching is a connector whose watches are f.
type watching func(yield func(kvdbsync.Batch, error) bool)

func (f watching) Watch(context.Context, string) iter.Seq2[kvdbsync.Batch, error] {
	return iter.Seq2[kvdbsync.Batch, error](f)
}

func TestHealthCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		m.Fail(errDown)
		s := run(t, kvdbsync.Options{Connector: &m, AntiEntropy: -1})
		expectCounts := func(batches, events, listings, gaps uint64) {
			t.Helper()
			synctest.Wait()
			if h := s.Health(); h.Batches != batches || h.Events != events || h.Listings != listings || h.Gaps != gaps {
				t.Errorf("%d batches, %d events, %d listings, %d gaps; want %d, %d, %d, %d",
					h.Batches, h.Events, h.Listings, h.Gaps, batches, events, listings, gaps)
			}
		}
		elapse(time.Minute)
		expectCounts(0, 0, 0, 0) // what never was in sync does not fall out of it
		m.Fail(nil)
		m.Txn(put("a", "1"), put("b", "1"))
		elapse(time.Minute)
		expectCounts(1, 2, 1, 0)
		m.Txn(put("a", "2"))
		m.Txn(put("a", "3"), put("b", "2"))
		expectCounts(3, 5, 1, 0)
		m.Fail(errors.New("cut"))
		elapse(time.Minute)
		m.Fail(nil)
		elapse(time.Minute)
		expectCounts(4, 7, 2, 1)
		s.Relist()
		expectCounts(5, 9, 3, 1)
		if h := s.Health(); h.Err != nil || h.LastErr == nil || h.LastErr.Error() != "cut" || time.Since(h.LastErrAt) < time.Minute {
			t.Errorf("error %v, the last one %v at %v", h.Err, h.LastErr, h.LastErrAt)
		}
	})
}
