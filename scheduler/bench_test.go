package scheduler_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
	"github.com/keyplane/keyplane/statestore"
)

// start runs a scheduler whose verbs do nothing, with everything else as
// shipped, until stop is called.
func start(tb testing.TB) (s *scheduler.Scheduler, stop func()) {
	s = scheduler.New(scheduler.Options{TransactionLog: txnlog.New(txnlog.Options{Out: io.Discard})})
	register(tb, s)
	return s, begin(tb, s)
}

// begin runs s until stop is called.
func begin(tb testing.TB, s *scheduler.Scheduler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	}
}

func register(tb testing.TB, s *scheduler.Scheduler) {
	type none = struct{}
	interfacePrefix := models.For[*interfaces.Interface]().Prefix()
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, int]{
		Name:     "interface",
		Model:    models.For[*interfaces.Interface](),
		Create:   func(context.Context, string, *interfaces.Interface) (int, error) { return 1, nil },
		Update:   func(_ context.Context, _ string, _, _ *interfaces.Interface, m int) (int, error) { return m, nil },
		Delete:   func(context.Context, string, *interfaces.Interface, int) error { return nil },
		Retrieve: echo[*interfaces.Interface](1),
	})
	if err != nil {
		tb.Fatal(err)
	}
	_, err = scheduler.Register(s, scheduler.Descriptor[*l3.Route, none]{
		Name:  "route",
		Model: models.For[*l3.Route](),
		Dependencies: func(_ string, r *l3.Route) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "outgoing-interface", Key: interfacePrefix + r.OutgoingInterface}}
		},
		Create:   func(context.Context, string, *l3.Route) (none, error) { return none{}, nil },
		Update:   func(context.Context, string, *l3.Route, *l3.Route, none) (none, error) { return none{}, nil },
		Delete:   func(context.Context, string, *l3.Route, none) error { return nil },
		Retrieve: echo[*l3.Route](none{}),
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// echo retrieves just what is wanted, as copies.
func echo[V proto.Message, M any](meta M) func(context.Context, []scheduler.Desired[V]) scheduler.Retrieved[V, M] {
	return func(_ context.Context, ws []scheduler.Desired[V]) scheduler.Retrieved[V, M] {
		return func(yield func(scheduler.Found[V, M], error) bool) {
			for _, w := range ws {
				if !yield(scheduler.Found[V, M]{Key: w.Key, Value: proto.CloneOf(w.Value), Meta: meta}, nil) {
					return
				}
			}
		}
	}
}

// network is n values: a tenth interfaces, the rest routes, each over one of them.
func network(n int) []proto.Message {
	var out []proto.Message
	ifs := n / 10
	for i := range ifs {
		out = append(out, &interfaces.Interface{Name: fmt.Sprintf("if%d", i), Type: interfaces.Interface_VETH, Enabled: true})
	}
	for i := range n - ifs {
		out = append(out, &l3.Route{
			OutgoingInterface: fmt.Sprintf("if%d", i%ifs),
			DstNetwork:        fmt.Sprintf("10.%d.%d.%d/32", i>>16, i>>8&255, i&255),
		})
	}
	return out
}

func keyOf(tb testing.TB, m proto.Message) string {
	model, ok := models.BuiltIn().ForMessage(m)
	if !ok {
		tb.Fatalf("no model for %T", m)
	}
	key, err := model.Key(m)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func keysOf(tb testing.TB, ms []proto.Message) []string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = keyOf(tb, m)
	}
	return out
}

func wantAll(tb testing.TB, s *scheduler.Scheduler, keys []string, ms []proto.Message) []scheduler.Change {
	out := make([]scheduler.Change, len(ms))
	for i, m := range ms {
		v, err := s.Value(keys[i], m)
		if err != nil {
			tb.Fatal(err)
		}
		out[i] = v.Change()
	}
	return out
}

func unwantAll(keys []string) []scheduler.Change {
	out := make([]scheduler.Change, len(keys))
	for i, key := range keys {
		out[i] = scheduler.Unwant(key)
	}
	return out
}

func mustCommit(tb testing.TB, s *scheduler.Scheduler, txn scheduler.Txn) *scheduler.Record {
	r, err := s.Commit(context.Background(), txn)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func benchCommit(b *testing.B, n int) {
	ms := network(n)
	keys := keysOf(b, ms)
	var before, after runtime.MemStats
	for b.Loop() {
		b.StopTimer()
		s, stop := start(b)
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		r := mustCommit(b, s, scheduler.Txn{Changes: wantAll(b, s, keys, ms)})
		b.StopTimer()
		if r.Executed.Len() != n {
			b.Fatalf("%d operations, not %d", r.Executed.Len(), n)
		}
		mustCommit(b, s, scheduler.Txn{}) // when it begins, the run of the first one is free
		runtime.GC()
		runtime.GC() // what was in use as the first one began
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/value")
		stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "values/s")
}

func BenchmarkCommit100k(b *testing.B) { benchCommit(b, 100_000) }

func BenchmarkCommit1M(b *testing.B) { benchCommit(b, 1_000_000) }

// BenchmarkCommitRemembered100k is BenchmarkCommit100k with a memory on disk.
func BenchmarkCommitRemembered100k(b *testing.B) {
	const n = 100_000
	ms := network(n)
	keys := keysOf(b, ms)
	for b.Loop() {
		b.StopTimer()
		store, err := statestore.Open(filepath.Join(b.TempDir(), "applied"), statestore.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		s := scheduler.New(scheduler.Options{TransactionLog: txnlog.New(txnlog.Options{Out: io.Discard}), Memory: store})
		register(b, s)
		stop := begin(b, s)
		runtime.GC()
		b.StartTimer()
		mustCommit(b, s, scheduler.Txn{Changes: wantAll(b, s, keys, ms)})
		b.StopTimer()
		stop()
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "values/s")
}

// BenchmarkPending100k commits the routes, which wait, and then the interfaces.
func BenchmarkPending100k(b *testing.B) {
	const n = 100_000
	ms := network(n)
	keys := keysOf(b, ms)
	for b.Loop() {
		b.StopTimer()
		s, stop := start(b)
		b.StartTimer()
		mustCommit(b, s, scheduler.Txn{Changes: wantAll(b, s, keys[n/10:], ms[n/10:])})
		mustCommit(b, s, scheduler.Txn{Changes: wantAll(b, s, keys[:n/10], ms[:n/10])})
		b.StopTimer()
		stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "values/s")
}

func BenchmarkDelete100k(b *testing.B) {
	const n = 100_000
	ms := network(n)
	keys := keysOf(b, ms)
	for b.Loop() {
		b.StopTimer()
		s, stop := start(b)
		mustCommit(b, s, scheduler.Txn{Changes: wantAll(b, s, keys, ms)})
		b.StartTimer()
		if r := mustCommit(b, s, scheduler.Txn{Changes: unwantAll(keys)}); r.Executed.Len() != n {
			b.Fatalf("%d operations, not %d", r.Executed.Len(), n)
		}
		b.StopTimer()
		stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "values/s")
}

func BenchmarkResync100k(b *testing.B) {
	const n = 100_000
	ms := network(n)
	s, stop := start(b)
	defer stop()
	mustCommit(b, s, scheduler.Txn{Changes: wantAll(b, s, keysOf(b, ms), ms)})
	for b.Loop() {
		if r := mustCommit(b, s, scheduler.Txn{Refresh: true}); r.Executed.Len() != 0 {
			b.Fatalf("%d operations, not none", r.Executed.Len())
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "values/s")
}

// BenchmarkOneChange creates one route while many values stand.
func BenchmarkOneChange(b *testing.B) {
	for name, n := range map[string]int{"1k": 1000, "100k": 100_000, "1M": 1_000_000} {
		b.Run(name, func(b *testing.B) { benchOneChange(b, n) })
	}
}

func benchOneChange(b *testing.B, n int) {
	s, stop := start(b)
	defer stop()
	ms := network(n)
	mustCommit(b, s, scheduler.Txn{Changes: wantAll(b, s, keysOf(b, ms), ms)})
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		route := &l3.Route{OutgoingInterface: "if1", DstNetwork: fmt.Sprintf("11.%d.%d.%d/32", i>>16&255, i>>8&255, i&255)}
		key := keyOf(b, route)
		start := time.Now()
		v, err := s.Value(key, route)
		if err != nil {
			b.Fatal(err)
		}
		mustCommit(b, s, scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
}
