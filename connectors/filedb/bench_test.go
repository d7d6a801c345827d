package filedb_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/filedb"
)

// BenchmarkWriteToEvent is how long a saved file takes to be a batch, with others beside it.
func BenchmarkWriteToEvent(b *testing.B) {
	for _, files := range []int{1, 1000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			dir := b.TempDir()
			for i := range files {
				write(b, fmt.Sprintf("%s/f%04d.yaml", dir, i), fmt.Sprintf("data: [{key: config/%d, value: 0}]", i))
			}
			m := mirrored(b, newDB(b, filedb.Config{Paths: []string{dir}}))
			for n := 1; b.Loop(); n++ {
				write(b, dir+"/f0000.yaml", fmt.Sprintf("data: [{key: config/0, value: %d}]", n))
				m.holds(b, "config/0", fmt.Sprint(n))
			}
		})
	}
}

// BenchmarkLoad10k is how long 10,000 keys take from a file to the first batch.
func BenchmarkLoad10k(b *testing.B) {
	const keys = 10_000
	var pairs, structured, values strings.Builder
	pairs.WriteString("data:\n")
	structured.WriteString("linuxConfig:\n  interfaces:\n")
	for i := range keys {
		fmt.Fprintf(&pairs, "- key: config/linux/interfaces/v2/interface/if%d\n  value: {name: if%d, type: LOOPBACK, enabled: true, ip_addresses: [10.0.0.1/24]}\n", i, i)
		fmt.Fprintf(&structured, "  - {name: if%d, type: LOOPBACK, enabled: true, ip_addresses: [10.0.0.1/24]}\n", i)
		fmt.Fprintf(&values, ",\n{\"key\":\"config/linux/interfaces/v2/interface/if%d\",\"value\":{\"name\":\"if%d\",\"type\":\"LOOPBACK\",\"enabled\":true,\"ip_addresses\":[\"10.0.0.1/24\"]}}", i, i)
	}
	for name, text := range map[string]string{
		"pairs.yaml": pairs.String(), "structured.yaml": structured.String(), "pairs.json": `{"data":[` + values.String()[1:] + "]}",
	} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				db := newDB(b, filedb.Config{Paths: []string{path}})
				for batch, err := range db.Watch(b.Context(), root) {
					if err != nil || len(batch.Events) != keys || batch.Events[0].Err != nil {
						b.Fatal(len(batch.Events), err)
					}
					break
				}
			}
		})
	}
}
