package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// BenchKeys is the number of keys that BenchmarkList lists.
const BenchKeys = 100_000

// BenchPair returns the i-th pair of a store, similar to real ones: 100 bytes of value.
func BenchPair(prefix string, i int) kvdbsync.Pair {
	return kvdbsync.Pair{
		Key:   fmt.Sprintf("%sconfig/linux/interfaces/v2/interface/if%06d", prefix, i),
		Value: fmt.Appendf(nil, `{"name":"if%06d","type":"LOOPBACK","enabled":true,"ip_addresses":["10.%d.%d.1/24"],"mtu":1500}`, i, i>>8&255, i&255),
	}
}

// BenchmarkList measures the cold start of a Source on a store with BenchKeys pairs, until
// all are taken and their values unmarshalled. In the same run it measures a bare program
// that lists and unmarshals them. It also reports the memory that the Source keeps.
func BenchmarkList(b *testing.B, c kvdbsync.Connector, prefix string, bare func() []kvdbsync.Pair) {
	var barely, with time.Duration
	var kept, values int64
	// Both in each round, so that a change of the machine's load concerns both.
	for b.Loop() {
		took, size := bareStart(b, bare)
		barely, values = barely+took, size
		took, kept = coldStart(b, c, prefix)
		with += took
	}
	perRun := func(d time.Duration) float64 { return float64(d.Milliseconds()) / float64(b.N) }
	b.ReportMetric(perRun(barely), "bare-ms")
	b.ReportMetric(perRun(with), "source-ms")
	b.ReportMetric(with.Seconds()/barely.Seconds(), "of-bare")
	b.ReportMetric(float64(kept)/BenchKeys, "kept-B/key")
	b.ReportMetric(float64(values)/BenchKeys, "value-B/key")
}

// bareStart returns how long a bare program takes, and the bytes of all values.
func bareStart(b *testing.B, bare func() []kvdbsync.Pair) (took time.Duration, values int64) {
	b.Helper()
	begun := time.Now()
	pairs := bare()
	for _, p := range pairs {
		unmarshal(b, p.Value)
		values += int64(len(p.Value))
	}
	took = time.Since(begun)
	if len(pairs) != BenchKeys {
		b.Fatalf("the bare program found %d keys", len(pairs))
	}
	return took, values
}

// coldStart returns how long a new Source takes, and the bytes it keeps.
func coldStart(b *testing.B, c kvdbsync.Connector, prefix string) (took time.Duration, kept int64) {
	b.Helper()
	before := heap()
	begun := time.Now()
	source, end := runSource(b, c, prefix)
	defer end()
	takeAll(b, source)
	took = time.Since(begun)
	kept = heap() - before
	// The mirror must be alive when the heap is measured.
	runtime.KeepAlive(source)
	return took, kept
}

// takeAll takes the first change, which has the whole listing, and unmarshals each value
// as the bare program does.
func takeAll(b *testing.B, source *kvdbsync.Source) {
	b.Helper()
	<-source.Ready()
	change, _ := source.Take()
	for _, e := range change.Events {
		unmarshal(b, e.Value)
	}
	if len(change.Events) != BenchKeys {
		b.Fatalf("%d keys taken; health %+v", len(change.Events), source.Health())
	}
}

// runSource runs a Source until end is called. It has no anti-entropy, which would list
// the store again within a long benchmark.
func runSource(b *testing.B, c kvdbsync.Connector, prefix string) (source *kvdbsync.Source, end func()) {
	source = kvdbsync.NewSource(kvdbsync.Options{Name: "bench", Connector: c, Root: prefix, AntiEntropy: -1})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- source.Run(ctx) }()
	return source, func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	runtime.GC() // frees memory with finalizers of the first collection
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// unmarshal parses a value of BenchPair, and ends the benchmark if it is another one.
func unmarshal(b *testing.B, value []byte) {
	var item struct {
		Name        string
		Type        string
		Enabled     bool
		IPAddresses []string `json:"ip_addresses"`
		MTU         int
	}
	if err := json.Unmarshal(value, &item); err != nil || item.Name == "" {
		b.Fatalf("%q: %v", value, err)
	}
}
