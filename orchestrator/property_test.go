package orchestrator_test

import (
	"errors"
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

// A shop is a store, and a source that mirrors it.
type shop struct {
	content map[string]string // name -> MTU, or what is none
	mirror  map[string]string // what the orchestrator was given
	up      bool
	problem bool
	store   int  // how often it was replaced by another store
	other   bool // since the source last had news
}

// news is what the source has to tell: what a listing shows, or what a watch tells.
func (s *shop) news(listing bool) kvdbsync.Change {
	c := kvdbsync.Change{Synced: true, Resynced: listing}
	gone := ""
	if listing {
		gone = "?"
		c.Listing.Identity = fmt.Sprint(s.store)
		if s.other && s.mirror != nil {
			c.Distrust = kvdbsync.ErrOtherStore
		}
		s.other = false
	}
	for _, name := range slices.Sorted(maps.Keys(s.mirror)) {
		if _, is := s.content[name]; !is {
			c.Events = append(c.Events, event(name, gone))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.content)) {
		if s.mirror[name] != s.content[name] {
			c.Events = append(c.Events, event(name, s.content[name]))
		}
	}
	if s.problem {
		c.Problems = []error{errors.New("a.yaml: cannot be read")}
	}
	s.mirror = maps.Clone(s.content)
	return c
}

// A town is shops, and an agent that lives again and again with one memory.
type town struct {
	rt     *rapid.T
	shops  map[string]*shop
	memory *notebook
	stands string
}

func order() []string { return []string{"c", "b", "a"} } // the highest first

func isValid(mtu string) bool { return mtu != "" && mtu != "10000" && mtu != "{" }

// live is one life of the agent: it ends with all shops having been listed after the
// deadline of every doubt, if orderly.
func (w *town) live(t *testing.T, acts []act, orderly bool) {
	life(t, map[string]int{"a": 1, "b": 2, "c": 3}, w.stands, w.memory, func(_ *testing.T, r *rig) {
		seen := map[string]bool{}
		had := strings.Fields(r.standing())
		for _, s := range w.shops {
			s.up, s.mirror = false, nil
		}
		check := func() {
			synctest.Wait()
			if len(seen) == len(w.shops) {
				return
			}
			for _, one := range had {
				name, _, _ := strings.Cut(one, "=")
				if !strings.Contains(" "+r.standing(), " "+name+"=") {
					w.rt.Errorf("%s was removed when only %v had been listed", name, seen)
				}
			}
		}
		for _, a := range acts {
			w.act(r, a, seen)
			if a.wait {
				check()
			}
		}
		check()
		if orderly {
			w.endTrouble(r)
		}
		synctest.Wait()
		w.stands = r.standing()
	})
}

// An act is something that happens to a shop.
type act struct {
	shop, what string
	puts       map[string]string // name -> MTU, empty: delete
	wait       bool              // until it has been followed
}

// acts draws what happens in a life. A test that is synctest's cannot draw.
func acts(rt *rapid.T) (out []act) {
	for range rapid.IntRange(0, 20).Draw(rt, "steps") {
		a := act{
			shop: rapid.SampledFrom(order()).Draw(rt, "shop"),
			what: rapid.SampledFrom([]string{"change", "change", "change", "wipe", "replace", "up", "up", "down", "problem", "time"}).Draw(rt, "what"),
			wait: rapid.Bool().Draw(rt, "wait"),
			puts: map[string]string{},
		}
		if a.what == "change" {
			for range rapid.IntRange(1, 3).Draw(rt, "keys") {
				key := fmt.Sprintf("if%d", rapid.IntRange(0, 3).Draw(rt, "key"))
				a.puts[key] = rapid.SampledFrom([]string{"", "1000", "2000", "3000", "10000", "{"}).Draw(rt, "mtu")
			}
		}
		out = append(out, a)
	}
	return out
}

// act lets it happen.
func (w *town) act(r *rig, a act, seen map[string]bool) {
	s := w.shops[a.shop]
	switch a.what {
	case "change":
		maps.Copy(s.content, a.puts)
		maps.DeleteFunc(s.content, func(_, mtu string) bool { return mtu == "" })
	case "wipe":
		clear(s.content)
	case "replace":
		clear(s.content)
		s.store++
		s.up, s.other = false, true
	case "up":
		s.up, seen[a.shop] = true, true
		r.inputs[a.shop].give(s.news(true))
		return
	case "down":
		s.up = false
	case "problem":
		s.problem = !s.problem
	case "time":
		<-time.After(4 * time.Second)
	}
	if s.up {
		r.inputs[a.shop].give(s.news(false))
	}
}

// endTrouble ends all trouble.
func (w *town) endTrouble(r *rig) {
	for range 2 {
		for _, name := range order() {
			s := w.shops[name]
			s.up, s.problem = true, false
			r.inputs[name].give(s.news(true))
		}
		<-time.After(20 * time.Second) // the latest deadline is two times the grace time away
	}
}

// wanted is what stands where nothing is refused: for each key the value of the
// highest shop that has one. Keys of which some value is refused are left out.
func (w *town) wanted() (all map[string]string, refused map[string]bool) {
	all, refused = map[string]string{}, map[string]bool{}
	for _, shop := range slices.Backward(order()) {
		for name, mtu := range w.shops[shop].content {
			if isValid(mtu) {
				all[name] = mtu
			} else {
				refused[name] = true
			}
		}
	}
	for name := range refused {
		delete(all, name)
	}
	return all, refused
}

func (w *town) check() {
	all, refused := w.wanted()
	stands := map[string]string{}
	for one := range strings.FieldsSeq(w.stands) {
		if name, mtu, _ := strings.Cut(one, "="); !refused[name] {
			stands[name] = mtu
		}
	}
	if !maps.Equal(stands, all) {
		w.rt.Errorf("%v stand, want %v", stands, all)
	}
}

// TestLives lets stores change, come, go, be emptied and have problems, and an agent end
// at any moment and live again with what it remembers. Whatever the order, what stands in the
// end is a function of what the stores hold in the end; and nothing is ever removed before all
// stores have been read.
func TestLives(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		w := &town{rt: rt, memory: newNotebook(), stands: "old=1", shops: map[string]*shop{}}
		for _, name := range order() {
			w.shops[name] = &shop{content: map[string]string{}}
		}
		for range rapid.IntRange(0, 3).Draw(rt, "lives") {
			w.live(t, acts(rt), rapid.Bool().Draw(rt, "orderly"))
		}
		w.live(t, acts(rt), true)
		w.check()
		for _, s := range w.shops { // what is mended counts, whatever was before
			maps.DeleteFunc(s.content, func(_, mtu string) bool { return !isValid(mtu) })
		}
		w.live(t, nil, true)
		w.check()
	})
}
