package folders

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// TestLikeAMap compares an Index with a map, and a copy of it with the map at that time.
func TestLikeAMap(t *testing.T) {
	keys := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "/"}), 0, 6), func(parts []string) string { return strings.Join(parts, "") })
	draw.Check(t, func(t *rapid.T) {
		var x Index[string]
		all := map[string]string{}
		check := func(x *Index[string], all map[string]string, prefix string) {
			var want []string
			for _, key := range slices.Sorted(maps.Keys(all)) {
				if strings.HasPrefix(key, prefix) {
					want = append(want, all[key])
				}
			}
			if got := slices.Collect(x.Under(prefix, maps.All(all))); !slices.Equal(got, want) {
				t.Fatalf("under %q: %q, want %q", prefix, got, want)
			}
		}
		change := func() {
			key := keys.Draw(t, "key")
			if rapid.Bool().Draw(t, "set") {
				all[key] = key + rapid.SampledFrom([]string{"1", "2"}).Draw(t, "item")
				x.Set(key, all[key])
			} else {
				delete(all, key)
				x.Delete(key)
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			change()
			check(&x, all, keys.Draw(t, "prefix"))
		}
		before, copied := maps.Clone(all), x.Copy()
		for range rapid.IntRange(1, 5).Draw(t, "later steps") {
			change()
		}
		prefix := keys.Draw(t, "prefix")
		check(&copied, before, prefix)
		check(&x, all, prefix)
	})
}

// TestOtherFoldersTakeNothing: only the folders that were asked about have items.
func TestOtherFoldersTakeNothing(t *testing.T) {
	var x Index[int]
	none := iter.Seq2[string, int](func(func(string, int) bool) {})
	x.Under("vpp/interface/loop1/address/", none)
	x.Set("config/vpp/route", 1)
	x.Set("vpp/bd/1", 2)
	x.Set("vpp/interface/loop2/address/10.0.0.1/24", 3)
	if got := maps.Collect(x.All()); len(got) != 1 || got["vpp/interface/loop2/address/10.0.0.1/24"] != 3 {
		t.Errorf("the items are %v, want 3 alone", got)
	}
}
