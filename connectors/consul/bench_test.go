package consul_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

const benchValue = `{"name":"loop1","type":"LOOPBACK","enabled":true,"mtu":%d}`

// benchOf is a server beside a bare client, which does nothing but ask, and compare indexes.
func benchOf(b *testing.B, c *testkit.Consul) conformance.Bench {
	client := bareClient(b, c.Addr)
	return conformance.Bench{
		Connector: connect(consul.Config{Address: c.Addr}),
		Put: func(p kvdbsync.Pair) error {
			_, err := client.KV().Put(&api.KVPair{Key: p.Key[1:], Value: p.Value}, nil)
			return err
		},
		Watch: func(ctx context.Context, prefix string, seen func(key string)) {
			var ask api.QueryOptions
			had := map[string]uint64{}
			next := func() bool {
				pairs, meta, err := client.KV().List(prefix[1:], ask.WithContext(ctx))
				if err != nil {
					return false
				}
				for _, p := range pairs {
					if had[p.Key] != p.ModifyIndex {
						had[p.Key] = p.ModifyIndex
						seen("/" + p.Key)
					}
				}
				ask.WaitIndex = max(1, meta.LastIndex)
				return true
			}
			if !next() {
				b.Fatal("no first answer")
			}
			go func() {
				for next() {
				}
			}()
		},
	}
}

// BenchmarkPutToTake is about one key: Consul sends all there are with each change.
func BenchmarkPutToTake(b *testing.B) {
	s := benchOf(b, testkit.StartConsul(b, testkit.ConsulOptions{}))
	s.Keys = 1
	conformance.BenchmarkPut(b, s, root)
}

func Benchmark10kPuts(b *testing.B) {
	conformance.BenchmarkPuts(b, func() (conformance.Bench, string) {
		c := testkit.StartConsul(b, testkit.ConsulOptions{})
		return benchOf(b, c), root
	})
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
