package kvdbsync_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

func TestAntiEntropyFindsWhatTheWatchLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		m.Txn(put("a", "1"), put("b", "1"))
		s := run(t, kvdbsync.Options{Connector: &m})
		expect(t, s, "a=1 b=1 resynced")
		m.Lose(put("a", "2"), kvdbsync.Event{Key: "b"}, put("c", "1"))
		expect(t, s, "nothing")
		elapse(13 * time.Minute) // ten, and a quarter, and the grace time
		expect(t, s, "a=2 c=1 b? resynced")
		if h := s.Health(); h.State != kvdbsync.Synced {
			t.Errorf("health %+v", h)
		}
	})
}

func TestAntiEntropyLeavesAGoodWatchAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		m.Txn(put("a", "1"))
		watches := &counting{Connector: &m}
		s := run(t, kvdbsync.Options{Connector: watches})
		synced := s.Health().Since
		expect(t, s, "a=1 resynced")
		elapse(13 * time.Minute)
		expect(t, s, "resynced")
		if n := len(watches.times()); n != 2 || !s.Health().Since.Equal(synced) {
			t.Errorf("%d watches, want the running one and a listing", n)
		}
	})
}

func TestAntiEntropyCanBeOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		s := run(t, kvdbsync.Options{Connector: &m, AntiEntropy: -1})
		expect(t, s, "resynced")
		m.Lose(put("a", "1"))
		elapse(24 * time.Hour)
		expect(t, s, "nothing")
		s.Relist()
		elapse(6 * time.Second)
		expect(t, s, "a=1 resynced")
		s.Relist()
		expect(t, s, "resynced")
	})
}

// A slow listing is older than what the watch says meanwhile, and one that is
// quick is younger than what the watch is about to say. Neither is a loss.
func TestAntiEntropyAllowsForRaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		m.Txn(put("old", "1"), put("gone", "1"))
		c := &delayed{Memory: &m}
		s := run(t, kvdbsync.Options{Connector: c, AntiEntropy: -1})
		expect(t, s, "gone=1 old=1 resynced")

		c.listing.Store(int64(time.Second)) // the listing is read now and arrives in a second
		s.Relist()
		synctest.Wait()
		m.Txn(put("old", "2"), put("new", "1"), kvdbsync.Event{Key: "gone"})
		expect(t, s, "old=2 new=1 gone-")
		elapse(10 * time.Second)
		expect(t, s, "resynced")

		c.listing.Store(0)
		c.changes.Store(int64(3 * time.Second)) // the watch is late, the listing is not
		m.Txn(put("old", "3"), put("newer", "1"), kvdbsync.Event{Key: "new"})
		s.Relist()
		expect(t, s, "nothing")
		elapse(10 * time.Second)
		expect(t, s, "old=3 newer=1 new- resynced")
		if n := c.watches.Load(); n != 3 {
			t.Errorf("%d watches, want one and two listings: races were taken for losses", n)
		}
	})
}

func TestAntiEntropyListingThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		m.Txn(put("a", "1"))
		c := &delayed{Memory: &m}
		s := run(t, kvdbsync.Options{Connector: c, AntiEntropy: -1})
		expect(t, s, "a=1 resynced")
		c.refuse.Store(true)
		s.Relist()
		expect(t, s, "nothing")
		if h := s.Health(); h.State != kvdbsync.Synced {
			t.Errorf("health %+v", h)
		}
		c.refuse.Store(false)
		s.Relist()
		expect(t, s, "resynced")
	})
}

// A requested listing is confirmed as soon as the watch has delivered all of it, not only after the
// grace time. Requests leave the store half of the time.
func TestRelistConfirmsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		c := &delayed{Memory: &m}
		s := run(t, kvdbsync.Options{Connector: c, AntiEntropy: -1, Grace: time.Minute})
		expect(t, s, "resynced")
		c.changes.Store(int64(time.Second)) // the watch is late, the listing is not
		m.Txn(put("a", "1"), put("b", "1"))
		s.Relist()
		elapse(1300 * time.Millisecond)
		expect(t, s, "a=1 b=1 resynced")

		c.listing.Store(int64(10 * time.Second))
		for range 60 {
			s.Relist()
			elapse(time.Second)
		}
		if n := c.watches.Load() - 2; n > 4 {
			t.Errorf("%d listings of 10 s in a minute", n)
		}
	})
}

// delayed is a store far away: its first batch arrives after listing, the others
// after changes.
type delayed struct {
	*conformance.Memory
	listing, changes atomic.Int64 // nanoseconds
	watches          atomic.Int64
	refuse           atomic.Bool
}

func (d *delayed) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		d.watches.Add(1)
		if d.refuse.Load() {
			yield(kvdbsync.Batch{}, errors.New("too busy"))
			return
		}
		for b, err := range d.Memory.Watch(ctx, prefix) {
			if b.Synced {
				elapse(time.Duration(d.listing.Load()))
			} else {
				elapse(time.Duration(d.changes.Load()))
			}
			if !yield(b, err) {
				return
			}
		}
	}
}
