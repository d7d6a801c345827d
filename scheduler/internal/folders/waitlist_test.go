package folders_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/scheduler/internal/folders"
)

// contents returns the elements of the lists in their order.
func contents(l *folders.Waitlists[int], of []string) (out []string) {
	for _, folder := range of {
		list := l.In(folder)
		for i := range list.Len() {
			out = append(out, fmt.Sprint(folder, list.At(i)))
		}
	}
	return out
}

// Lists have the elements that were added and not removed. Undoing all changes, last first, leads
// back through the same contents in the same order. An element may name a folder twice.
func TestChangesAndTheirUndoing(t *testing.T) {
	all := []string{"", "a/", "a/b/"}
	draw.Check(t, func(t *rapid.T) {
		var l folders.Waitlists[int]
		type change struct {
			before []string
			places *folders.Places[int]
			added  bool
		}
		var changes []change
		var present []*folders.Places[int]
		want := map[string]int{}
		where := map[*folders.Places[int]][]string{}
		for i := range rapid.IntRange(1, 30).Draw(t, "changes") {
			c := change{before: contents(&l, all), added: len(present) == 0 || rapid.Bool().Draw(t, "add")}
			step := +1
			if c.added {
				in := rapid.SliceOfN(rapid.SampledFrom(all), 1, 4).Draw(t, "all")
				c.places = l.Add(i, in)
				where[c.places] = in
				present = append(present, c.places)
			} else {
				at := rapid.IntRange(0, len(present)-1).Draw(t, "which")
				c.places = present[at]
				present = append(present[:at], present[at+1:]...)
				l.Remove(c.places)
				step = -1
			}
			for _, folder := range where[c.places] {
				want[folder] += step
			}
			for _, folder := range all {
				if got := l.In(folder).Len(); got != want[folder] {
					t.Fatalf("%d elements in %q, expected %d", got, folder, want[folder])
				}
			}
			changes = append(changes, c)
		}
		for i, c := range slices.Backward(changes) {
			if c.added {
				l.Remove(c.places)
			} else {
				l.Restore(c.places)
			}
			if got := contents(&l, all); fmt.Sprint(got) != fmt.Sprint(c.before) {
				t.Fatalf("after undoing change %d: %v, before it: %v", i, got, c.before)
			}
		}
		if !l.Empty() {
			t.Fatal("lists remain after all changes were undone")
		}
	})
}
