package kvdbsync_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

func TestAListingSucceedsAnother(t *testing.T) {
	for _, c := range []struct {
		what        string
		before, now kvdbsync.Listing
		want        error
	}{
		{"nothing is known", kvdbsync.Listing{}, kvdbsync.Listing{}, nil},
		{"the first one", kvdbsync.Listing{}, kvdbsync.Listing{Identity: "a", Rev: 1}, nil},
		{"the same store", kvdbsync.Listing{Identity: "a", Rev: 1}, kvdbsync.Listing{Identity: "a", Rev: 1}, nil},
		{"another store", kvdbsync.Listing{Identity: "a", Rev: 1}, kvdbsync.Listing{Identity: "b", Rev: 9}, kvdbsync.ErrOtherStore},
		{"a store that does not say", kvdbsync.Listing{Identity: "a"}, kvdbsync.Listing{}, nil},
		{"an older revision", kvdbsync.Listing{Rev: 7}, kvdbsync.Listing{Rev: 6}, kvdbsync.ErrWentBack},
		{"a failover", kvdbsync.Listing{Identity: "a"}, kvdbsync.Listing{Identity: "b", Former: "a"}, nil},
		{"a failover to a store with other data", kvdbsync.Listing{Identity: "a"}, kvdbsync.Listing{Identity: "b", Former: "c"}, kvdbsync.ErrOtherStore},
		{"another part", kvdbsync.Listing{Identity: "a b"}, kvdbsync.Listing{Identity: "b a c"}, nil},
		{"one part is another", kvdbsync.Listing{Identity: "a b"}, kvdbsync.Listing{Identity: "a c"}, kvdbsync.ErrOtherStore},
		{"one part failed over", kvdbsync.Listing{Identity: "a b"}, kvdbsync.Listing{Identity: "a c", Former: "x b"}, nil},
	} {
		if err := c.now.Succeeds(c.before); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
}

// took is the next Change, once nothing moves any more.
func took(t *testing.T, s *kvdbsync.Source) kvdbsync.Change {
	t.Helper()
	synctest.Wait()
	c, ok := s.Take()
	if !ok {
		t.Fatal("there is nothing to take")
	}
	return c
}

func TestAChangeTellsOfItsListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan step)
		s := run(t, kvdbsync.Options{Connector: script(steps), MinBackoff: 1, MaxBackoff: 1})
		list := func(rev int64, identity string, keys ...string) {
			b := kvdbsync.Batch{Synced: true, Rev: rev, Identity: identity}
			for _, key := range keys {
				b.Events = append(b.Events, put(key, "1"))
			}
			steps <- step{b: b}
		}
		check := func(what string, began time.Time, keys int, identity string, distrust error) {
			t.Helper()
			c := took(t, s)
			if got := c.Listing; !got.Began.Equal(began) || got.Keys != keys || got.Identity != identity {
				t.Errorf("%s: %+v, want %d keys of %s since %v", what, got, keys, identity, began)
			}
			if !errors.Is(c.Distrust, distrust) {
				t.Errorf("%s: distrust is %v, want %v", what, c.Distrust, distrust)
			}
		}
		began := time.Now()
		synctest.Wait()
		elapse(time.Second)
		list(5, "one", "a", "b")
		check("the first listing", began, 2, "one", nil)

		steps <- step{b: kvdbsync.Batch{Rev: 8, Events: []kvdbsync.Event{put("c", "1")}}}
		check("a change", time.Time{}, 0, "", nil)
		next := func() time.Time {
			steps <- step{err: errDown}
			elapse(time.Second)
			synctest.Wait()
			return time.Now().Add(-time.Second)
		}
		began = next()
		list(7, "one", "a", "b")
		check("a revision that was seen, and has gone", began, 2, "one", kvdbsync.ErrWentBack)
		began = next()
		list(7, "", "a", "b")
		check("a store that does not say", began, 2, "one", nil)
		next()
		list(7, "two", "a", "b")
		began = next()
		list(9, "two", "a")
		check("two listings at once, the first of them of another store", began, 1, "two", kvdbsync.ErrOtherStore)

		steps <- step{b: kvdbsync.Batch{Rev: 10, Events: []kvdbsync.Event{{Key: "a", Absent: true}}}}
		check("a key was evicted", time.Time{}, 0, "", kvdbsync.ErrLostKeys)
		steps <- step{b: kvdbsync.Batch{Rev: 11, Events: []kvdbsync.Event{{Key: "x", Absent: true}, put("y", "1")}}}
		check("a key that nobody knew was evicted", time.Time{}, 0, "", nil)

		began = next()
		steps <- step{b: kvdbsync.Batch{LostKeys: true}}
		list(12, "two", "b")
		check("keys were evicted while nobody watched", began, 1, "two", kvdbsync.ErrLostKeys)
		began = next()
		list(13, "two", "b")
		check("the listing after it", began, 1, "two", nil)
	})
}
