package kvdbsync_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A shelf is a connector to a store of which only the test knows the changes.
type shelf struct {
	listing []kvdbsync.Event
	steps   chan step
}

func (s *shelf) connector() kvdbsync.Connector {
	return connector(func(ctx context.Context, yield func(kvdbsync.Batch, error) bool) {
		more := yield(kvdbsync.Batch{Synced: true, Events: slices.Clone(s.listing)}, nil)
		for more {
			select {
			case next := <-s.steps:
				more = yield(next.b, next.err)
			case <-ctx.Done():
				return
			}
		}
	})
}

// change makes the watch say something.
func (s *shelf) change(events ...kvdbsync.Event) {
	s.steps <- step{b: kvdbsync.Batch{Events: events}}
}

func del(key string) kvdbsync.Event { return kvdbsync.Event{Key: key} }

// Keys for which there is no room are ignored, and one is named. Those that the agent has stay, also when a listing has many
// new ones before them.
func TestKeysWithoutRoomAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shelf{[]kvdbsync.Event{put("x", "1"), put("y", "1")}, make(chan step)}
		s := run(t, kvdbsync.Options{Connector: store.connector(), Bounds: kvdbsync.Bounds{Room: kvdbsync.NewRoom(3)}, MinBackoff: time.Second, MaxBackoff: time.Second})
		expect := func(what, want string) {
			t.Helper()
			if got := taken(s); got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		const full = `such as this one: too large: there is no room for `
		const bound = `: max-keys (orchestrator.conf) allows the stores 3 keys together, and each its share)`
		expect("listed", "x=1 y=1 resynced")
		store.change(put("a", "1"), put("b", "1"), put("c", "1"))
		expect("new ones", `a=1 (2 keys are ignored, `+full+`"b"`+bound)
		store.change(put("b", "2"), put("x", "2"))
		expect("changes", `x=2 (2 keys are ignored, `+full+`"b"`+bound)
		store.change(del("b"))
		expect("an ignored one goes", "(ignored keys that have more than 4096 bytes, are not UTF-8 text, or exceed max-keys: 1)")
		store.listing = []kvdbsync.Event{put("0", "1"), put("1", "1"), put("a", "1"), put("x", "2"), put("y", "1")}
		store.steps <- step{err: errors.New("the line breaks")}
		elapse(2 * time.Second)
		expect("listed again", `(2 keys are ignored, `+full+`"0"`+bound+" resynced")
	})
}

// A store that takes all places that it can get leaves the others their share.
func TestEachStoreHasItsShareOfTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := kvdbsync.NewRoom(12)
		hoard := &shelf{nil, make(chan step)}
		for _, key := range "abcdefghijklmnopqrstuvwxyz" {
			hoard.listing = append(hoard.listing, put(string(key), "1"))
		}
		modest := &shelf{[]kvdbsync.Event{put("1", "1"), put("2", "1"), put("3", "1"), put("4", "1")}, make(chan step)}
		var sources []*kvdbsync.Source
		for _, c := range []*shelf{hoard, modest, modest} {
			sources = append(sources, newSource(kvdbsync.Options{Connector: c.connector(), Bounds: kvdbsync.Bounds{Room: room}}))
		}
		for _, s := range sources { // when all have their share, as in an agent
			start(t, s)
		}
		synctest.Wait()
		var got []int
		for _, s := range sources {
			got = append(got, s.Health().Keys)
		}
		if got[0] > 8 || got[1] < 2 || got[2] < 2 || got[0]+got[1]+got[2] > 12 {
			t.Errorf("the stores have %v keys", got)
		}
	})
}

// When a tenth of the room is free again, the store is listed for the keys that were ignored.
func TestIgnoredKeysComeWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := kvdbsync.NewRoom(2)
		first := &shelf{[]kvdbsync.Event{put("x", "1")}, make(chan step)}
		other := run(t, kvdbsync.Options{Connector: first.connector(), Bounds: kvdbsync.Bounds{Room: room}})
		if got := taken(other); got != "x=1 resynced" {
			t.Fatalf("the first store: %s", got)
		}
		second := &shelf{[]kvdbsync.Event{put("a", "1"), put("b", "1")}, make(chan step)}
		var log bytes.Buffer
		s := run(t, kvdbsync.Options{
			Connector: second.connector(), Bounds: kvdbsync.Bounds{Room: room}, MinBackoff: time.Second, MaxBackoff: time.Second,
			Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if got := taken(s); got != `a=1 (a key is ignored: too large: there is no room for "b": max-keys (orchestrator.conf) allows the stores 2 keys together, and each its share) resynced` {
			t.Fatalf("the second store: %s", got)
		}
		second.listing = []kvdbsync.Event{put("b", "1")}
		second.change(del("a"))
		elapse(time.Minute)
		if got := taken(s); got != "a- b=1 resynced" {
			t.Errorf("when there is room: %s", got)
		}
		if text := log.String(); strings.Contains(text, kvdbsync.ErrDrifted.Error()) || !strings.Contains(text, "there is room for keys now that were ignored") {
			t.Errorf("the log gives another reason for the new watch:\n%s", text)
		}
	})
}
