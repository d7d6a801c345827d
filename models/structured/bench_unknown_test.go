package structured_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// What one value with an unknown field costs must not depend on how many there are.
func BenchmarkUnknownFields(b *testing.B) {
	for _, n := range []int{500, 5_000, 50_000} {
		var text strings.Builder
		text.WriteString("linuxConfig:\n  interfaces:\n")
		for i := range n {
			fmt.Fprintf(&text, "    - {name: x%d, type: DUMMY, nosuchfield: 1}\n", i)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if items, _ := structured.For(models.BuiltIn()).Parse([]byte(text.String()), document.YAML); len(items) != n || items[n-1].Err == nil {
					b.Fatalf("%d items", len(items))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/value")
		})
	}
}
