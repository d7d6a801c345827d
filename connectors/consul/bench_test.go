package consul_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// seen is when a value came out at the end.
type seen struct {
	key, value string
	at         time.Time
}

const benchValue = `{"name":"loop1","type":"LOOPBACK","enabled":true,"mtu":%d}`

// BenchmarkPutToTake is the time from before a put of one key until a Source's
// consumer has it, side by side with a bare blocking query for the same puts.
func BenchmarkPutToTake(b *testing.B) {
	c := testkit.StartConsul(b, testkit.ConsulOptions{})
	client := bareClient(b, c.Addr)
	bare, ours := bareSeen(b, c), sourceSeen(b, c)
	var barely, with []time.Duration
	for i := 0; b.Loop(); i++ {
		value := fmt.Sprintf(benchValue, i)
		begun := time.Now()
		if _, err := client.KV().Put(&api.KVPair{Key: "vnf-agent/vpp1/a", Value: []byte(value)}, nil); err != nil {
			b.Fatal(err)
		}
		barely = append(barely, await(b, bare, value).Sub(begun))
		with = append(with, await(b, ours, value).Sub(begun))
	}
	report := func(name string, of []time.Duration) {
		slices.Sort(of)
		b.ReportMetric(float64(of[len(of)/2].Microseconds()), name+"-p50-us")
		b.ReportMetric(float64(of[len(of)*99/100].Microseconds()), name+"-p99-us")
	}
	report("bare", barely)
	report("source", with)
}

func await(b *testing.B, from <-chan seen, value string) time.Time {
	b.Helper()
	for s := range from {
		if s.value == value {
			return s.at
		}
	}
	b.Fatal("the watch ended")
	return time.Time{}
}

// Benchmark10kPuts puts 10,000 keys as fast as Consul takes them from 16 clients,
// and tells how long after the last put had returned all had come out: of a bare
// blocking query, and of a Source.
func Benchmark10kPuts(b *testing.B) {
	b.Run("bare", func(b *testing.B) { benchmarkPuts(b, bareSeen) })
	b.Run("source", func(b *testing.B) { benchmarkPuts(b, sourceSeen) })
}

func benchmarkPuts(b *testing.B, watch func(*testing.B, *testkit.Consul) <-chan seen) {
	const keys = 10_000
	var puts, behind time.Duration
	for b.Loop() {
		c := testkit.StartConsul(b, testkit.ConsulOptions{})
		client := bareClient(b, c.Addr)
		out := watch(b, c)
		last := make(chan time.Time)
		go func() {
			var at time.Time
			for have := map[string]bool{}; len(have) < keys; {
				s := <-out
				have[s.key], at = true, s.at
			}
			last <- at
		}()
		begun := time.Now()
		putKeys(b, client, keys)
		returned := time.Now()
		puts += returned.Sub(begun)
		behind += max(0, (<-last).Sub(returned))
		c.Kill()
	}
	b.ReportMetric(keys*float64(b.N)/puts.Seconds(), "puts/s")
	b.ReportMetric(float64(behind.Microseconds())/float64(b.N)/1000, "ms-behind")
}

func putKeys(b *testing.B, client *api.Client, keys int) {
	const writers = 16
	errs := make(chan error)
	for w := range writers {
		go func() {
			var err error
			for i := w; i < keys && err == nil; i += writers {
				_, err = client.KV().Put(&api.KVPair{Key: fmt.Sprintf("vnf-agent/vpp1/%08d", i), Value: fmt.Appendf(nil, benchValue, i)}, nil)
			}
			errs <- err
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkList100k is the time until a Source's consumer has 100,000 keys, side by
// side with a bare client that lists and decodes them, and with one more change of
// one key; and the memory that the Source then has, besides keys and values.
func BenchmarkList100k(b *testing.B) {
	const keys = 100_000
	c := testkit.StartConsul(b, testkit.ConsulOptions{})
	client := bareClient(b, c.Addr)
	bytes := fill(b, client, keys)
	var bare, ours, change time.Duration
	var memory float64
	for b.Loop() {
		begun := time.Now()
		pairs, _, err := client.KV().List("vnf-agent/vpp1/", nil)
		if must(b, pairs, err); len(pairs) != keys {
			b.Fatal(len(pairs))
		}
		bare += time.Since(begun)
		pairs = nil
		before := heap()
		ctx, cancel := context.WithCancel(b.Context())
		source := newSource(c)
		begun = time.Now()
		done := run(ctx, source)
		if events := take(source); len(events) != keys {
			b.Fatal(len(events))
		}
		ours += time.Since(begun)
		memory = (heap() - before - bytes) / keys
		begun = time.Now()
		_, err = client.KV().Put(&api.KVPair{Key: "vnf-agent/vpp1/00050000", Value: []byte(begun.String())}, nil)
		must(b, pairs, err)
		take(source)
		change += time.Since(begun)
		cancel()
		must(b, source, <-done)
	}
	n := float64(b.N)
	b.ReportMetric(float64(bare.Milliseconds())/n, "bare-ms")
	b.ReportMetric(float64(ours.Milliseconds())/n, "source-ms")
	b.ReportMetric(float64(change.Milliseconds())/n, "one-change-ms")
	b.ReportMetric(memory, "B/key")
}

// fill puts keys, and returns the bytes of them and their values.
func fill(b *testing.B, client *api.Client, keys int) (bytes float64) {
	b.Helper()
	for i := 0; i < keys; {
		var ops api.KVTxnOps
		for ; len(ops) < kvdbsync.MaxApply && i < keys; i++ {
			op := &api.KVTxnOp{Verb: api.KVSet, Key: fmt.Sprintf("vnf-agent/vpp1/%08d", i), Value: fmt.Appendf(nil, benchValue, i)}
			bytes += float64(len(op.Key) + 1 + len(op.Value))
			ops = append(ops, op)
		}
		if ok, answer, _, err := client.KV().Txn(ops, nil); err != nil || !ok {
			b.Fatal(answer, err)
		}
	}
	return bytes
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// bareSeen is a program that does nothing but ask, and compare indexes.
func bareSeen(b *testing.B, c *testkit.Consul) <-chan seen {
	client := bareClient(b, c.Addr)
	out := make(chan seen, 100)
	listed := make(chan bool, 1)
	ctx := b.Context()
	go func() {
		defer close(out)
		have := map[string]uint64{}
		for ask := new(api.QueryOptions); ; {
			pairs, meta, err := client.KV().List("vnf-agent/vpp1/", ask.WithContext(ctx))
			if err != nil {
				return
			}
			now := time.Now()
			for _, p := range pairs {
				if have[p.Key] != p.ModifyIndex {
					have[p.Key] = p.ModifyIndex
					out <- seen{p.Key, string(p.Value), now}
				}
			}
			ask.WaitIndex = max(1, meta.LastIndex)
			select {
			case listed <- true:
			default:
			}
		}
	}()
	<-listed
	return out
}

func newSource(c *testkit.Consul) *kvdbsync.Source {
	return kvdbsync.NewSource(kvdbsync.Options{
		Name: "consul", Root: root, Connector: connect(consul.Config{Address: c.Addr}), AntiEntropy: -1,
	})
}

func run(ctx context.Context, source *kvdbsync.Source) <-chan error {
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx) }()
	return done
}

// take waits for a change with events.
func take(source *kvdbsync.Source) []kvdbsync.Event {
	for range source.Ready() {
		if c, _ := source.Take(); len(c.Events) > 0 {
			return c.Events
		}
	}
	return nil
}

// sourceSeen is a consumer of a Source on the connector.
func sourceSeen(b *testing.B, c *testkit.Consul) <-chan seen {
	ctx := b.Context()
	source := newSource(c)
	done := run(ctx, source)
	<-source.Ready()
	source.Take()
	out := make(chan seen, 100)
	go func() {
		defer close(out)
		for {
			select {
			case <-source.Ready():
			case <-done:
				return
			}
			change, _ := source.Take()
			now := time.Now()
			for _, e := range change.Events {
				out <- seen{strings.TrimPrefix(e.Key, "/"), string(e.Value), now}
			}
		}
	}()
	return out
}
