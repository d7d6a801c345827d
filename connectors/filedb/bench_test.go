package filedb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// BenchmarkWriteToTake is how long a saved file takes to be taken, with others beside it.
func BenchmarkWriteToTake(b *testing.B) {
	for _, files := range []int{1, 1000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			dir := b.TempDir()
			for i := range files {
				write(b, fmt.Sprintf("%s/f%04d.yaml", dir, i), fmt.Sprintf("data: [{key: config/%d, value: 0}]", i))
			}
			conformance.BenchmarkPut(b, conformance.Bench{
				Connector: newDB(b, filedb.Config{Paths: []string{dir}}),
				Put: func(p kvdbsync.Pair) error {
					write(b, dir+"/f0000.yaml", fmt.Sprintf("data: [{key: %s, value: %s}]", p.Key, p.Value))
					return nil
				},
			}, root)
		})
	}
}

// Benchmark10kPuts saves 100 files of 100 keys each, one after the other.
func Benchmark10kPuts(b *testing.B) {
	conformance.BenchmarkPuts(b, func() (conformance.Bench, string) {
		dir := b.TempDir()
		return conformance.Bench{
			Connector: newDB(b, filedb.Config{Paths: []string{dir}}),
			PutAll: func(prefix string, n int) {
				for i := 0; i < n; i += 100 {
					write(b, fmt.Sprintf("%s/%06d.json", dir, i), pairsText(prefix, i, i+100))
				}
			},
		}, root
	})
}

// BenchmarkList100k is a cold start, from one file and from a thousand, beside a
// program that reads and unmarshals the same files.
func BenchmarkList100k(b *testing.B) {
	for _, files := range []int{1, 1000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			dir, each := b.TempDir(), conformance.BenchKeys/files
			for i := range files {
				write(b, fmt.Sprintf("%s/%06d.json", dir, i), pairsText(root, i*each, (i+1)*each))
			}
			conformance.BenchmarkList(b, fresh{b, dir}, root, func() []kvdbsync.Pair { return readPairs(b, dir) })
		})
	}
}

// pairsText is a file in the key/value form.
func pairsText(prefix string, from, to int) string {
	var data []string
	for i := from; i < to; i++ {
		p := conformance.BenchPair(prefix, i)
		data = append(data, fmt.Sprintf(`{"key": %q, "value": %s}`, p.Key, p.Value))
	}
	return `{"data": [` + strings.Join(data, ",\n") + "]}\n"
}

// readPairs is the least that a program must do.
func readPairs(b *testing.B, dir string) (pairs []kvdbsync.Pair) {
	paths, err := filepath.Glob(dir + "/*.json")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		var file struct {
			Data []struct {
				Key   string
				Value json.RawMessage
			}
		}
		if err := json.Unmarshal(text, &file); err != nil {
			b.Fatal(err)
		}
		for _, p := range file.Data {
			pairs = append(pairs, kvdbsync.Pair{Key: p.Key, Value: p.Value})
		}
	}
	return pairs
}

// A fresh connector knows nothing of an earlier watch.
type fresh struct {
	b   *testing.B
	dir string
}

func (f fresh) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return newDB(f.b, filedb.Config{Paths: []string{f.dir}}).Watch(ctx, prefix)
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

// BenchmarkStatus is one change of published status where there is much of it.
func BenchmarkStatus(b *testing.B) {
	const keys = 10_000
	for name, path := range map[string]string{"file": "status.json", "folder": "status/"} {
		b.Run(name, func(b *testing.B) {
			db := newDB(b, filedb.Config{Paths: []string{b.TempDir()}, StatusPath: b.TempDir() + "/" + path})
			s, err := db.Session(b.Context(), 0)
			if err != nil {
				b.Fatal(err)
			}
			pair := func(i int) kvdbsync.Pair {
				return kvdbsync.Pair{Key: fmt.Sprintf("%sconfig-status/route/%05d", root, i), Value: []byte(`{"state":"CONFIGURED"}`)}
			}
			var all []kvdbsync.Pair
			for i := range keys {
				all = append(all, pair(i))
			}
			if err := s.Apply(b.Context(), all); err != nil {
				b.Fatal(err)
			}
			for i := 0; b.Loop(); i++ {
				if err := s.Apply(b.Context(), []kvdbsync.Pair{pair(i % keys)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
