package models

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// TestHasElement compares it with the plain way: each place where the text stands.
func TestHasElement(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		draw := rapid.StringMatching(`[a/-]{1,6}`)
		name, text := draw.Draw(t, "name"), draw.Draw(t, "text")
		border := func(i int) bool { return i < 0 || i >= len(name) || name[i] == '/' || name[i] == '-' }
		want := false
		for at := range name {
			want = want || strings.HasPrefix(name[at:], text) && border(at-1) && border(at+len(text))
		}
		if got := hasElement(name, text); got != want {
			t.Fatalf("hasElement(%q, %q) is %v", name, text, got)
		}
	})
}

// A text that stands at each byte of a long name, but never as an element.
func BenchmarkHasElement(b *testing.B) {
	for _, n := range []int{1 << 14, 1 << 16, 1 << 18} {
		name, text := strings.Repeat("a", n), strings.Repeat("a", n/2)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				hasElement(name, text)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/byte")
		})
	}
}
