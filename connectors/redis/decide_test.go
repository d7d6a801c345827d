package redis

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/push"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/kvdbsync"
)

func TestNewestNamingCounts(t *testing.T) {
	t.Parallel()
	down := naming{err: errors.New("down")}
	tests := map[string]struct {
		said []naming
		want string
	}{
		"all agree":               {[]naming{{addr: "a"}, {addr: "a"}}, "a"},
		"one has not heard":       {[]naming{{addr: "old", epoch: 1}, {addr: "new", epoch: 2}, {addr: "old", epoch: 1}}, "new"},
		"one answers":             {[]naming{down, {addr: "a"}, down}, "a"},
		"a later one of an epoch": {[]naming{{addr: "a", epoch: 3}, {addr: "b", epoch: 3}}, "a"},
		"nobody answers":          {[]naming{down, down}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := newest(test.said)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestOnlyOwnSlotsCount(t *testing.T) {
	t.Parallel()
	node := func(id string) []goredis.ClusterNode { return []goredis.ClusterNode{{ID: id}, {ID: "replica"}} }
	served := make([]bool, 10)
	serve(served, []goredis.ClusterSlot{
		{Start: 0, End: 3, Nodes: node("me")}, {Start: 4, End: 6, Nodes: node("other")},
		{Start: 8, End: 99, Nodes: node("me")}, {Start: 7, End: 7},
	}, "me")
	if want := []bool{true, true, true, true, false, false, false, false, true, true}; !slices.Equal(served, want) {
		t.Errorf("got %v, want %v", served, want)
	}
}

func TestHaveMoved(t *testing.T) {
	t.Parallel()
	a, b, spare := master{addr: "a:1"}, master{addr: "b:1"}, master{addr: "b:1", empty: true}
	for name, test := range map[string]struct {
		known, now []master
		want       bool
	}{
		"nothing":                 {[]master{a, spare}, []master{a, spare}, false},
		"a master without slots":  {[]master{a}, []master{a, spare}, true},
		"it is away for a moment": {[]master{a, spare}, []master{a}, false},
		"it gets slots":           {[]master{a, spare}, []master{a, b}, true},
		"it has no slots left":    {[]master{a, b}, []master{a, spare}, true},
		"another one":             {[]master{a}, []master{b}, true},
		"one less":                {[]master{a, b}, []master{a}, true},
	} {
		if got := haveMoved(test.known, test.now); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestWhichEventsSuffice(t *testing.T) {
	t.Parallel()
	for have, want := range map[string]bool{
		"": false, "AK": true, "AKE": true, "AE": false, "K": false, "g$xeK": true, "g$xK": false, "Kg$lshzxet": true,
	} {
		if eventsSuffice(have) != want {
			t.Errorf("%q: %v, want %v", have, !want, want)
		}
		if merged := mergedEvents(have); !eventsSuffice(merged) || !containsAll(merged, have) {
			t.Errorf("%q was merged to %q", have, merged)
		}
	}
}

func containsAll(merged, have string) bool {
	return strings.Trim(have, merged) == ""
}

func TestNamesOfInvalidation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		said []any
		want []string
		ok   bool
	}{
		"keys":        {[]any{"invalidate", []any{"a", "b"}}, []string{"a", "b"}, true},
		"flush":       {[]any{"invalidate", nil}, nil, false},
		"nothing":     {[]any{"invalidate"}, nil, false},
		"not a list":  {[]any{"invalidate", "a"}, nil, false},
		"not all are": {[]any{"invalidate", []any{"a", int64(1)}}, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, ok := names(test.said); !slices.Equal(got, test.want) && ok || ok != test.ok {
				t.Errorf("got %v, %v; want %v, %v", got, ok, test.want, test.ok)
			}
		})
	}
}

// What must be read again is told from what need not be.
func TestOverlaps(t *testing.T) {
	t.Parallel()
	draw.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[a-e]`)
		read := rapid.SliceOfDistinct(key, rapid.ID).Draw(t, "read")
		named := rapid.SliceOf(key).Draw(t, "named")
		slices.Sort(read)
		b := newInbox("", kvdbsync.Bounds{})
		b.add(named...)
		some, others := b.overlaps(read)
		isRead := func(name string) bool { return slices.Contains(read, name) }
		if some != slices.ContainsFunc(named, isRead) {
			t.Errorf("some: %v", some)
		}
		if others != slices.ContainsFunc(named, func(name string) bool { return !isRead(name) }) {
			t.Errorf("others: %v", others)
		}
		slices.Sort(named)
		if got := b.take(); !slices.Equal(got, slices.Compact(named)) {
			t.Errorf("took %v of %v", got, named)
		}
	})
}

// A server that names keys of others has the watch neither keep nor read them.
func TestKeysOfOthersAreIgnored(t *testing.T) {
	t.Parallel()
	n := &node{box: newInbox("/a/", kvdbsync.Bounds{}), heard: map[string]struct{}{}}
	for _, key := range []string{"/a/1", "/b/1", "/ab", ""} {
		if err := (invalidation{n}).HandlePushNotification(t.Context(), push.NotificationHandlerContext{}, []any{"invalidate", []any{key}}); err != nil {
			t.Fatal(err)
		}
		if err := n.hear(&goredis.Message{Channel: "__keyspace@0__:" + key, Payload: "evicted"}); err != nil {
			t.Fatal(err)
		}
	}
	for what, kept := range map[string]map[string]struct{}{"named": n.box.named, "heard": n.heard, "evicted": n.box.maybeEvicted} {
		if got := slices.Sorted(maps.Keys(kept)); !slices.Equal(got, []string{"/a/1"}) {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// A command that waits for the one connection that reads must wait as long as the answer
// before it takes, which may be minutes on a slow line.
func TestReadingWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	a := access{Config{}.withDefaults()}
	n := newNode(t.Context(), a, "127.0.0.1:1", "", newInbox("", kvdbsync.Bounds{}), newMemory(), slog.New(slog.DiscardHandler))
	defer n.close()
	if o := n.data.Options(); o.PoolSize != 1 || o.PoolTimeout < time.Hour {
		t.Errorf("%d connections, waited for %v; want 1, and an hour at least", o.PoolSize, o.PoolTimeout)
	}
}

// Which counts of evicted keys are news.
func TestEvictedKeysAreCounted(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for i, step := range []struct {
		addr          string
		count, missed int64
		settled       bool // the listing was complete
	}{
		{"a", 7, 0, true}, // before the agent came
		{"a", 9, 2, false},
		{"a", 9, 2, true}, {"a", 9, 0, true}, {"b", 5, 0, true}, {"a", 3, 3, true}, // started again
		{"a", 4, 1, true}, {"b", 6, 1, true},
	} {
		if missed := m.missed(step.addr, step.count); missed != step.missed {
			t.Errorf("step %d: %d new, want %d", i, missed, step.missed)
		}
		if step.settled {
			m.settled(step.addr, step.count)
		}
	}
}
