package watch_test

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/watch"
)

func TestTermsFollowTheMetadata(t *testing.T) {
	x := watch.NewIndex()
	names := x.By(func(meta any) []string { return meta.([]string) })
	expect := func(term string, want ...string) {
		t.Helper()
		if got := names(term); !slices.Equal(got, want) {
			t.Errorf("names with term %q: %q, want %q", term, got, want)
		}
	}
	x.Set("b", []string{"red", "round"})
	x.Set("a", []string{"red", "red"})
	expect("red", "a", "b")
	x.Set("b", []string{"round"})
	expect("red", "a")
	x.Drop("a")
	expect("red")
	expect("round", "b")
}

func TestAWatchBeginsWithTheContent(t *testing.T) {
	x := watch.NewIndex()
	x.Set("a", 1)
	w := x.Watch()
	defer w.Close()
	x.Set("a", 1) // equal: no change
	x.Set("b", 2)
	x.Drop("b")
	x.Drop("unknown")
	if got, want := w.Take(), []watch.Change{{Name: "a", Meta: 1}, {Name: "b", Gone: true}}; !slices.Equal(got, want) {
		t.Errorf("watch yields %v, want %v", got, want)
	}
	w.Close()
	x.Set("c", 3)
	if got := w.Take(); len(got) > 0 {
		t.Errorf("a closed watch yields %v", got)
	}
}
