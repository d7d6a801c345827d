package faults

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// BenchmarkPutToVerb is the time from before one of 100 keys is put until its verb is
// called, and until a bare client that watches the same store has the value. Where
// nothing can be watched, bare is the put alone.
func BenchmarkPutToVerb(b *testing.B) { stores.EachBench(b, putToVerb) }

func putToVerb(b *testing.B, s stores.Bench) {
	put(b, s, 100, "v0")
	var seen, called countdown
	_, stop := startAgent(b, s, &called, 100)
	defer stop()
	if s.Watch != nil {
		s.Watch(b.Context(), b, seen.one)
	}
	var bare, ours []time.Duration
	for i := 0; b.Loop(); i++ {
		first, verb := seen.from(1), called.from(1)
		begun := time.Now()
		write(b, s, benchChange(i%100, fmt.Sprintf("v%d", i+1)))
		if s.Watch == nil {
			seen.one()
		}
		bare = append(bare, (<-first).Sub(begun))
		ours = append(ours, (<-verb).Sub(begun))
	}
	slices.Sort(bare)
	slices.Sort(ours)
	for _, p := range []int{50, 99} {
		us := func(of []time.Duration) float64 { return float64(of[len(of)*p/100].Microseconds()) }
		b.ReportMetric(us(bare), fmt.Sprintf("bare-p%d-us", p))
		b.ReportMetric(us(ours), fmt.Sprintf("p%d-us", p))
	}
	b.ReportMetric(float64(ours[len(ours)/2])/float64(bare[len(bare)/2]), "of-bare")
}

// BenchmarkCold100k starts an agent on a store with 100,000 keys, and waits for the
// last verb; before it, a bare program lists and unmarshals them. B/key is what
// a source keeps, B/key-agent all that the agent does.
func BenchmarkCold100k(b *testing.B) { stores.EachBench(b, cold) }

func cold(b *testing.B, s stores.Bench) {
	const keys = 100_000
	put(b, s, keys, "v0")
	var bare, ours time.Duration
	var agent, source, values int64
	for i := 1; b.Loop(); i++ {
		runtime.GC()
		begun := time.Now()
		values = bareProgram(b, s, keys)
		bare += time.Since(begun)

		before := heap()
		var called countdown
		took, stop := startAgent(b, s, &called, keys)
		ours += took
		after := called.from(1)
		write(b, s, benchChange(0, fmt.Sprintf("v%d", i)))
		<-after
		agent = heap() - before
		for range 10 { // the history packs the first transaction meanwhile
			<-time.After(100 * time.Millisecond)
			agent = min(agent, heap()-before)
		}
		stop()
		source = heapOfSource(b, s, keys)
	}
	n := float64(b.N)
	b.ReportMetric(bare.Seconds()/n, "s/bare")
	b.ReportMetric(ours.Seconds()/n, "s/applied")
	b.ReportMetric(ours.Seconds()/bare.Seconds(), "of-bare")
	b.ReportMetric(float64(source)/keys, "B/key")
	b.ReportMetric(float64(agent)/keys, "B/key-agent")
	b.ReportMetric(float64(values)/keys, "B/value")
}

// bareProgram is the least that a program must do. It returns the bytes of all values.
func bareProgram(b *testing.B, s stores.Bench, keys int) (bytes int64) {
	pairs, err := s.Pairs(b.Context())
	if err != nil || len(pairs) != keys {
		b.Fatalf("%d keys, want %d: %v", len(pairs), keys, err)
	}
	items := make(map[string]*interfaces.Interface, keys)
	for _, p := range pairs {
		item := new(interfaces.Interface)
		if err := protojson.Unmarshal(p.Value, item); err != nil {
			b.Fatal(err)
		}
		items[p.Key] = item
		bytes += int64(len(p.Value))
	}
	return bytes
}

// heapOfSource is what a source keeps once it has all keys and they were taken.
func heapOfSource(b *testing.B, s stores.Bench, keys int) int64 {
	before := heap()
	source := newBenchSource(s, nil)
	ctx, cancel := context.WithCancel(b.Context())
	var g errgroup.Group
	g.Go(func() error { return source.Run(ctx) })
	<-source.Ready()
	if c, _ := source.Take(); len(c.Events) != keys {
		b.Fatalf("%d keys taken", len(c.Events))
	}
	bytes := heap() - before
	cancel()
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	return bytes
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first has finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Benchmark10kPuts puts 10,000 keys as fast as the store takes them, and tells how
// long after the last put had returned all verbs had been called.
func Benchmark10kPuts(b *testing.B) { stores.EachBench(b, puts) }

func puts(b *testing.B, s stores.Bench) {
	const keys = 10_000
	var called countdown
	put(b, s, keys, "v0") // so that each run below changes as many
	_, stop := startAgent(b, s, &called, keys)
	defer stop()
	var taken, behind time.Duration
	for i := 1; b.Loop(); i++ {
		last := called.from(keys)
		begun := time.Now()
		putQuickly(b, s, keys, fmt.Sprintf("v%d", i))
		returned := time.Now()
		taken += returned.Sub(begun)
		behind += max(0, (<-last).Sub(returned))
	}
	b.ReportMetric(keys*float64(b.N)/taken.Seconds(), "puts/s")
	b.ReportMetric(float64(behind.Microseconds())/float64(b.N)/1000, "behind-ms")
}

// putQuickly gives each of the first n keys a text, each by a write of its own where
// the store has such.
func putQuickly(b *testing.B, s stores.Bench, n int, text string) {
	if s.Writers == 0 {
		put(b, s, n, text)
		return
	}
	var g errgroup.Group
	for w := range s.Writers {
		g.Go(func() error {
			for i := w; i < n; i += s.Writers {
				if err := s.Write(b.Context(), benchChange(i, text)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}

// put gives each of the first n keys a text, many at once.
func put(b *testing.B, s stores.Bench, n int, text string) {
	b.Helper()
	var changes []history.Change
	for i := range n {
		changes = append(changes, benchChange(i, text))
	}
	for some := range slices.Chunk(changes, s.AtOnce) {
		write(b, s, some...)
	}
}

func write(b *testing.B, s stores.Bench, changes ...history.Change) {
	b.Helper()
	if err := s.Write(b.Context(), changes...); err != nil {
		b.Fatal(err)
	}
}

// benchChange gives the i-th key a text. A hundred keys have one home, which is a
// file where there are files.
func benchChange(i int, text string) history.Change {
	return history.Change{Key: fmt.Sprintf("{%d}if%d", i/100, i), Text: text}
}

// A countdown tells when the last of some events was. Others are counted by nobody.
type countdown struct {
	mu   sync.Mutex // guards what follows
	left int
	last chan time.Time
}

// from begins to count n events.
func (c *countdown) from(n int) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.last = n, make(chan time.Time, 1)
	return c.last
}

func (c *countdown) one() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		c.last <- time.Now()
	}
}

// startAgent runs what stands between a store with some keys and the verbs, which
// only count, until stop is called. It returns once all keys are applied, and how
// long that took.
func startAgent(b *testing.B, s stores.Bench, called *countdown, keys int) (took time.Duration, stop func()) {
	b.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as package agent does when it starts
	applied := called.from(keys)
	begun := time.Now()
	log := slog.New(slog.DiscardHandler)
	sched := scheduler.New(scheduler.Options{Log: log, TransactionLog: txnlog.New(txnlog.Options{Out: io.Discard})})
	registerCounting(b, sched, called)
	source := newBenchSource(s, func(e kvdbsync.Event) any { return orchestrator.Decode(sched, log, e) })
	orch := orchestrator.New(sched, orchestrator.Options{Log: log, Sources: []orchestrator.Source{{Name: "store", Feed: source}}})
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{sched.Run, source.Run, orch.Run} {
		g.Go(func() error { return run(ctx) })
	}
	stop = func() {
		cancel()
		if err := g.Wait(); err != nil {
			b.Error(err)
		}
	}
	return (<-applied).Sub(begun), stop
}

func newBenchSource(s stores.Bench, decode func(kvdbsync.Event) any) *kvdbsync.Source {
	return kvdbsync.NewSource(kvdbsync.Options{
		Name: "store", Connector: s.Connect(), Root: stores.Root, Prefix: "config/", Log: slog.New(slog.DiscardHandler), AntiEntropy: -1,
		Decode: decode,
	})
}

func registerCounting(b *testing.B, sched *scheduler.Scheduler, called *countdown) {
	type none = struct{}
	type item = *interfaces.Interface
	_, err := scheduler.Register(sched, scheduler.Descriptor[item, none]{
		Name:   "model",
		Model:  models.For[item](),
		Create: func(context.Context, string, item) (none, error) { called.one(); return none{}, nil },
		Update: func(context.Context, string, item, item, none) (none, error) { called.one(); return none{}, nil },
		Delete: func(context.Context, string, item, none) error { called.one(); return nil },
	})
	if err != nil {
		b.Fatal(err)
	}
}
