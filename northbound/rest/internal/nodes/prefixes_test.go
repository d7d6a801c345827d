package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// A key is accepted if it has one of the prefixes.
func TestUnder(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.SampledFrom([]rune("ab/")), 0, 4, -1)
		prefixes, key := rapid.SliceOfN(word, 1, 6).Draw(t, "prefixes"), word.Draw(t, "key")
		keep, err := Under(slices.Clone(prefixes))
		if err != nil {
			t.Fatal(err)
		}
		want := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
		if got := keep(key); got != want {
			t.Errorf("%q under %q: %v, want %v", key, prefixes, got, want)
		}
	})
}

// The number of prefixes is bounded, and the error says by what.
func TestTooManyPrefixes(t *testing.T) {
	_, err := Under(make([]string, maxPrefixes+1))
	if err == nil || err.Error() != "argument prefix is given 1001 times; at most 1000 are allowed" {
		t.Errorf("the error is %v", err)
	}
}

// BenchmarkUnder asks about 10,000 keys under as many prefixes as one request may name.
func BenchmarkUnder(b *testing.B) {
	var prefixes, keys []string
	for i := range maxPrefixes {
		prefixes = append(prefixes, fmt.Sprintf("config/vpp/v2/route/if/loop%d/", i))
	}
	for i := range 10_000 {
		keys = append(keys, fmt.Sprintf("config/vpp/v2/route/if/loop%d/vrf/0/dst/10.0.0.0/8", i))
	}
	for b.Loop() {
		keep, err := Under(prefixes)
		if err != nil {
			b.Fatal(err)
		}
		for _, key := range keys {
			keep(key)
		}
	}
}

// BenchmarkUnderEach compares each key with each prefix.
func BenchmarkUnderEach(b *testing.B) {
	var prefixes, keys []string
	for i := range maxPrefixes {
		prefixes = append(prefixes, fmt.Sprintf("config/vpp/v2/route/if/loop%d/", i))
	}
	for i := range 10_000 {
		keys = append(keys, fmt.Sprintf("config/vpp/v2/route/if/loop%d/vrf/0/dst/10.0.0.0/8", i))
	}
	for b.Loop() {
		for _, key := range keys {
			_ = slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
		}
	}
}
