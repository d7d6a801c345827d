package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A Bench is a store to be measured, and a bare client of the same store.
type Bench struct {
	Connector kvdbsync.Connector
	Put       func(kvdbsync.Pair) error // several at the same time, unless PutAll is set
	Keys      int                       // of BenchmarkPut, used in turn. Defaults to a new key for each put
	// PutAll makes the first n pairs below a prefix as fast as the store takes them.
	// Defaults to Put by 16 clients.
	PutAll func(prefix string, n int)
	// Watch watches prefix like a bare client, until ctx ends. It calls seen with each key
	// as soon as it has the value, one key at a time. nil: the store can only be written.
	Watch func(ctx context.Context, prefix string, seen func(key string))
}

// BenchmarkPut measures the time from before a put until the consumer of a Source has it,
// and until the bare client has it, or else until the put returned.
func BenchmarkPut(b *testing.B, s Bench, prefix string) {
	source, end := runSource(b, s.Connector, prefix)
	defer end()
	<-source.Ready()
	source.Take()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	// The bare client reports on its own goroutine, so it carries the time along.
	type sighting struct {
		key string
		at  time.Time
	}
	// With room for repetitions, so that the bare client never waits for the benchmark.
	sightings := make(chan sighting, 100)
	seen := func(key string) { sightings <- sighting{key, time.Now()} }
	if s.Watch != nil {
		s.Watch(ctx, prefix, seen)
	}
	var barely, with []time.Duration
	for i := 0; b.Loop(); i++ {
		p := BenchPair(prefix, i)
		if s.Keys > 0 {
			p.Key = BenchPair(prefix, i%s.Keys).Key
		}
		begun := time.Now()
		if err := s.Put(p); err != nil {
			b.Fatal(err)
		}
		if s.Watch == nil {
			seen(p.Key)
		}
		takeKey(source, p.Key[len(prefix):])
		with = append(with, time.Since(begun))
		at := <-sightings
		// A store may announce a key twice; sightings of earlier puts are skipped.
		for at.key != p.Key {
			at = <-sightings
		}
		barely = append(barely, at.at.Sub(begun))
	}
	name := "bare"
	if s.Watch == nil {
		name = "put"
	}
	reportShares(b, name, barely)
	reportShares(b, "source", with)
}

// takeKey returns as soon as a consumer has a change of the key.
func takeKey(source *kvdbsync.Source, key string) {
	for {
		<-source.Ready()
		change, _ := source.Take()
		if slices.ContainsFunc(change.Events, func(e kvdbsync.Event) bool { return e.Key == key }) {
			return
		}
	}
}

// reportShares reports the median and the 99th percentile in microseconds.
func reportShares(b *testing.B, name string, of []time.Duration) {
	slices.Sort(of)
	for _, share := range []int{50, 99} {
		b.ReportMetric(float64(of[len(of)*share/100].Microseconds()), fmt.Sprintf("%s-p%d-us", name, share))
	}
}

// BenchmarkPuts puts 10,000 keys as fast as the store takes them. It reports the time from
// the end of the last put until a Source has delivered all, and until the bare client has,
// if there is one. Each run has its own prefix or store.
func BenchmarkPuts(b *testing.B, open func() (s Bench, prefix string)) {
	b.Run("source", func(b *testing.B) { puts(b, open, sourceWatch) })
	b.Run("bare", func(b *testing.B) {
		puts(b, open, func(b *testing.B, s Bench, prefix string, seen func(string)) (end func()) {
			if s.Watch == nil {
				b.Skip("nothing but a Source watches this store")
			}
			ctx, cancel := context.WithCancel(b.Context())
			s.Watch(ctx, prefix, seen)
			return cancel
		})
	})
}

// sourceWatch is a consumer of a Source.
func sourceWatch(b *testing.B, s Bench, prefix string, seen func(key string)) (end func()) {
	source, stop := runSource(b, s.Connector, prefix)
	<-source.Ready()
	ctx, cancel := context.WithCancel(b.Context())
	go func() {
		for ctx.Err() == nil {
			change, _ := source.Take()
			for _, e := range change.Events {
				seen(prefix + e.Key)
			}
			select {
			case <-source.Ready():
			case <-ctx.Done():
			}
		}
	}()
	return func() { cancel(); stop() }
}

// puts measures one kind of reader, which watch starts. Time behind is negative if the
// reader has the last key before the put returns; it counts as 0 then.
func puts(b *testing.B, open func() (Bench, string), watch func(b *testing.B, s Bench, prefix string, seen func(string)) (end func())) {
	const keys = 10_000
	var taken, behind time.Duration
	for b.Loop() {
		s, prefix := open()
		// The time is taken in the reader, not after a switch of goroutines.
		all, had := make(chan time.Time, 1), map[string]bool{}
		end := watch(b, s, prefix, func(key string) {
			if had[key] = true; len(had) == keys {
				select {
				case all <- time.Now():
				default: // one of them again
				}
			}
		})
		begun := time.Now()
		s.putAll(b, prefix, keys)
		returned := time.Now()
		taken += returned.Sub(begun)
		behind += max(0, (<-all).Sub(returned))
		end()
	}
	b.ReportMetric(keys*float64(b.N)/taken.Seconds(), "puts/s")
	b.ReportMetric(float64(behind.Microseconds())/float64(b.N)/1000, "ms-behind")
}

// putAll puts n pairs, by PutAll or by 16 clients with an equal share each.
func (s Bench) putAll(b *testing.B, prefix string, n int) {
	b.Helper()
	if s.PutAll != nil {
		s.PutAll(prefix, n)
		return
	}
	const clients = 16
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := c; i < n; i += clients {
				if err := s.Put(BenchPair(prefix, i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
}
