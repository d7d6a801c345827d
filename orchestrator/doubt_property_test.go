package orchestrator_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A doubter is the model of a source that is doubted, key by key and in the plainest
// way: what stands, and until when the keys in doubt stay.
type doubter struct {
	stands map[string]string    // name -> MTU
	until  map[string]time.Time // of the keys in doubt
}

const testGrace = 10 * time.Second // the default

// told takes a key that is put or, with an empty MTU, deleted.
func (d *doubter) told(name, mtu string) {
	delete(d.until, name)
	if d.stands[name] = mtu; mtu == "" {
		delete(d.stands, name)
	}
}

// listed takes a listing that began at a moment.
func (d *doubter) listed(content map[string]string, began, now time.Time, other bool) {
	for name := range content {
		delete(d.until, name)
	}
	for name, until := range maps.Clone(d.until) {
		if !began.Before(until) {
			delete(d.stands, name)
			delete(d.until, name)
		}
	}
	had := len(d.stands)
	var absent []string
	for name := range d.stands {
		if _, doubted := d.until[name]; content[name] == "" && !doubted {
			absent = append(absent, name)
		}
	}
	gone := len(absent) + len(d.until)
	switch {
	case other, len(d.until) > 0, len(content) == 0, gone >= 5 && 3*gone >= had:
		d.doubt(now, absent...)
	default:
		for _, name := range absent {
			delete(d.stands, name)
		}
	}
	maps.Copy(d.stands, content)
}

func (d *doubter) doubt(now time.Time, names ...string) {
	until := now.Add(testGrace)
	all := slices.SortedFunc(maps.Values(d.until), time.Time.Compare)
	if i := slices.IndexFunc(all, func(at time.Time) bool { return at.After(now) }); i >= 0 {
		until = all[i].Add(testGrace) // after the first that is open
	}
	if i := slices.IndexFunc(all, func(at time.Time) bool { return !at.Before(now.Add(testGrace)) }); i >= 0 {
		until = all[i] // with the first that is late enough
	}
	for _, name := range names {
		if _, doubted := d.until[name]; !doubted {
			d.until[name] = until
		}
	}
}

// A doing is a step of a history with doubts.
type doing struct {
	what  string
	names []int
	mtu   int
	late  int // tenths of a second that a listing takes
}

// TestDoubtsAreAsTheModel lets a store be written, emptied, replaced, cut off and listed at
// random, and compares the network and the number of keys in doubt with a model after
// each step.
func TestDoubtsAreAsTheModel(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		var doings []doing
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			doings = append(doings, doing{
				what:  rapid.SampledFrom([]string{"put", "put", "delete", "evict", "wipe", "replace", "cut", "list", "list", "time", "time"}).Draw(rt, "what"),
				names: rapid.SliceOfN(rapid.IntRange(1, 12), 1, 8).Draw(rt, "names"),
				mtu:   rapid.IntRange(1, 3).Draw(rt, "mtu"),
				late:  rapid.IntRange(0, 60).Draw(rt, "late"),
			})
		}
		bubble(t, map[string]int{"etcd": 1}, "", func(_ *testing.T, r *rig) {
			h := &history{rt: rt, r: r, store: map[string]string{}, mirror: map[string]string{}, model: doubter{map[string]string{}, map[string]time.Time{}}}
			h.list(0)
			for i, d := range doings {
				h.do(d)
				h.check(fmt.Sprint("step ", i, ": ", d))
			}
			h.list(0)
			<-time.After(2 * testGrace)
			h.list(0)
			h.check("in the end")
			if !maps.Equal(h.model.stands, h.store) {
				rt.Errorf("in the end the model has %v, the store %v", h.model.stands, h.store)
			}
		})
	})
}

// A history is a store, what its source has of it, and the model of what stands.
type history struct {
	rt            *rapid.T
	r             *rig
	store, mirror map[string]string
	away, other   bool
	model         doubter
}

func (h *history) do(d doing) {
	switch d.what {
	case "put", "delete", "evict":
		var text, evicted []string
		for _, i := range d.names {
			name, mtu, said := fmt.Sprint("if", i), fmt.Sprint(d.mtu), fmt.Sprint(d.mtu)
			switch d.what {
			case "delete":
				mtu, said = "", ""
			case "evict":
				mtu, said = "", "?"
			}
			if h.store[name] != mtu && !h.away {
				text = append(text, name+"="+said)
				if said == "?" {
					evicted = append(evicted, name)
				} else {
					h.model.told(name, said)
				}
			}
			h.write(h.store, name, mtu)
			if !h.away {
				h.write(h.mirror, name, mtu)
			}
		}
		h.model.doubt(time.Now(), evicted...)
		if len(text) > 0 {
			c := published(strings.Join(text, " "))
			if d.what == "evict" {
				c.Distrust = kvdbsync.ErrLostKeys
			}
			h.r.inputs["etcd"].give(c)
		}
	case "wipe":
		clear(h.store)
		h.away = true
	case "replace":
		clear(h.store)
		h.away, h.other = true, true
	case "cut":
		h.away = true
	case "list":
		h.list(time.Duration(d.late) * time.Second / 10)
	case "time":
		<-time.After(time.Duration(d.late) * time.Second / 4)
	}
}

func (*history) write(to map[string]string, name, mtu string) {
	if to[name] = mtu; mtu == "" {
		delete(to, name)
	}
}

// list has the source list the store; that takes a while.
func (h *history) list(takes time.Duration) {
	c := kvdbsync.Change{Synced: true, Resynced: true, Listing: kvdbsync.Listing{Began: time.Now()}}
	if h.other {
		c.Distrust = kvdbsync.ErrOtherStore
	}
	<-time.After(takes)
	for _, name := range slices.Sorted(maps.Keys(h.mirror)) {
		if h.store[name] == "" {
			c.Events = append(c.Events, event(name, "?"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.store)) {
		if h.store[name] != h.mirror[name] {
			c.Events = append(c.Events, event(name, h.store[name]))
		}
	}
	h.model.listed(h.store, c.Listing.Began, time.Now(), h.other)
	h.mirror, h.away, h.other = maps.Clone(h.store), false, false
	h.r.inputs["etcd"].give(c)
}

func (h *history) check(when string) {
	synctest.Wait()
	var want []string
	for _, name := range slices.Sorted(maps.Keys(h.model.stands)) {
		want = append(want, name+"="+h.model.stands[name])
	}
	if got := h.r.standing(); got != strings.Join(want, " ") {
		h.rt.Errorf("%s: stands %q, want %q", when, got, want)
	}
	if got := h.r.orch.Health()[0].Doubted; got != len(h.model.until) {
		h.rt.Errorf("%s: %d keys are in doubt, want %d", when, got, len(h.model.until))
	}
}
