package lowest_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/scheduler/internal/lowest"
)

type name string

func (n name) Key() string { return string(n) }

func TestLowestOther(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		all := rapid.SliceOf(rapid.SampledFrom([]name{"a", "b", "c", "d", "e"})).Draw(t, "added")
		var two lowest.Two[name]
		for _, n := range all {
			two.Add(n)
		}
		for _, n := range append(all, "none of them") {
			var want name
			for _, other := range all {
				if other != n && (want == "" || other < want) {
					want = other
				}
			}
			if got := two.Except(n); got != want {
				t.Fatalf("except %q of %q: %q, want %q", n, all, got, want)
			}
		}
	})
}
