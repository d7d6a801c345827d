package kvdbsync_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
)

// BenchmarkSource is one event of a batch of one, from the connector's yield to
// the consumer's Take, with 10,000 keys standing. "events/take" shows the merging.
func BenchmarkSource(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	s := kvdbsync.NewSource(kvdbsync.Options{Name: "endless", Connector: endless{b.N, cancel}, AntiEntropy: -1})
	b.ReportAllocs()
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	var events, takes int
	for running := true; running; {
		select {
		case <-s.Ready():
		case err := <-done:
			if err != nil {
				b.Fatal(err)
			}
			running = false
		}
		if c, ok := s.Take(); ok {
			events += len(c.Events)
			takes++
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(events)/float64(max(takes, 1)), "events/take")
}

// BenchmarkMemoryPerKey is what a Source keeps of a key besides the key itself.
func BenchmarkMemoryPerKey(b *testing.B) {
	const keys = 100_000
	for b.Loop() {
		list := kvdbsync.Batch{Events: changes(keys), Synced: true}
		before := heap()
		ctx, cancel := context.WithCancel(b.Context())
		s := kvdbsync.NewSource(kvdbsync.Options{Name: "list", Connector: once(list), AntiEntropy: -1})
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		<-s.Ready()
		s.Take()
		b.ReportMetric(float64(heap()-before)/keys, "B/key")
		runtime.KeepAlive(list)
		runtime.KeepAlive(s)
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// changes are n events of n keys.
func changes(n int) []kvdbsync.Event {
	events := make([]kvdbsync.Event, n)
	for i := range events {
		events[i] = put(fmt.Sprintf("config/linux/interfaces/v2/interface/if%d", i), fmt.Sprintf(`{"name":"if%d"}`, i))
	}
	return events
}

// endless yields n batches of one event each and calls done.
type endless struct {
	n    int
	done func()
}

func (c endless) Watch(ctx context.Context, _ string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		events := changes(10_000)
		values := [][]byte{[]byte(`{"enabled":true}`), []byte(`{"enabled":false}`)}
		if !yield(kvdbsync.Batch{Events: events, Synced: true}, nil) {
			return
		}
		for i := range c.n {
			e := events[i%len(events)]
			e.Value = values[i/len(events)%2]
			if !yield(kvdbsync.Batch{Events: []kvdbsync.Event{e}}, nil) {
				return
			}
		}
		c.done()
		<-ctx.Done()
	}
}

// once yields one batch.
type once kvdbsync.Batch

func (c once) Watch(ctx context.Context, _ string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		if yield(kvdbsync.Batch(c), nil) {
			<-ctx.Done()
		}
	}
}
