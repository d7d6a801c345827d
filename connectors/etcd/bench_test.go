package etcd_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// seen is when a key came out at the end.
type seen struct {
	key string
	at  time.Time
}

// BenchmarkPutToTake is the time from before a put until a Source's consumer has
// it, side by side with a bare watcher of the same server, for the same puts.
func BenchmarkPutToTake(b *testing.B) {
	e := testkit.StartEtcd(b, testkit.EtcdOptions{})
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	client := bareClient(b, clientv3.Config{Endpoints: []string{e.Endpoint}})
	bare, ours := bareSeen(ctx, b, e), sourceSeen(ctx, b, e)
	var barely, with []time.Duration
	for i := 0; b.Loop(); i++ {
		key := fmt.Sprintf("%s%08d", root, i)
		begun := time.Now()
		if _, err := client.Put(ctx, key, `{"name":"x"}`); err != nil {
			b.Fatal(err)
		}
		barely = append(barely, await(b, bare, key).Sub(begun))
		with = append(with, await(b, ours, key).Sub(begun))
	}
	slices.Sort(barely)
	slices.Sort(with)
	report := func(name string, of []time.Duration, share int) {
		b.ReportMetric(float64(of[len(of)*share/100].Microseconds()), name)
	}
	report("bare-p50-us", barely, 50)
	report("source-p50-us", with, 50)
	report("bare-p99-us", barely, 99)
	report("source-p99-us", with, 99)
}

// Benchmark10kPuts puts 10,000 keys as fast as etcd takes them from 16 clients,
// and tells how long after the last put had returned all had come out: of a bare
// watcher, and of a Source.
func Benchmark10kPuts(b *testing.B) {
	b.Run("bare", func(b *testing.B) { benchmarkPuts(b, bareSeen) })
	b.Run("source", func(b *testing.B) { benchmarkPuts(b, sourceSeen) })
}

func benchmarkPuts(b *testing.B, watch func(context.Context, *testing.B, *testkit.Etcd) <-chan seen) {
	const keys = 10_000
	e := testkit.StartEtcd(b, testkit.EtcdOptions{})
	client := bareClient(b, clientv3.Config{Endpoints: []string{e.Endpoint}})
	var puts, behind time.Duration
	for b.Loop() {
		if _, err := client.Delete(b.Context(), root, clientv3.WithPrefix()); err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		out := watch(ctx, b, e)
		last := make(chan time.Time)
		go func() {
			var at time.Time
			for range keys {
				at = (<-out).at
			}
			last <- at
		}()
		begun := time.Now()
		putKeys(b, client, keys)
		returned := time.Now()
		puts += returned.Sub(begun)
		behind += (<-last).Sub(returned)
		cancel()
	}
	b.ReportMetric(keys*float64(b.N)/puts.Seconds(), "puts/s")
	b.ReportMetric(float64(behind.Microseconds())/float64(b.N)/1000, "ms-behind")
}

func putKeys(b *testing.B, client *clientv3.Client, keys int) {
	const writers = 16
	errs := make(chan error)
	for w := range writers {
		go func() {
			var err error
			for i := w; i < keys && err == nil; i += writers {
				_, err = client.Put(b.Context(), fmt.Sprintf("%s%08d", root, i), `{"name":"x"}`)
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

func await(b *testing.B, from <-chan seen, key string) time.Time {
	b.Helper()
	for s := range from {
		if s.key == key {
			return s.at
		}
	}
	b.Fatal("the watch ended")
	return time.Time{}
}

// bareSeen is a program that does nothing but watch.
func bareSeen(ctx context.Context, b *testing.B, e *testkit.Etcd) <-chan seen {
	client := bareClient(b, clientv3.Config{Endpoints: []string{e.Endpoint}})
	events := client.Watch(ctx, root, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-events
	out := make(chan seen, 100)
	go func() {
		defer close(out)
		for r := range events {
			now := time.Now()
			for _, ev := range r.Events {
				out <- seen{string(ev.Kv.Key), now}
			}
		}
	}()
	return out
}

// sourceSeen is a consumer of a Source on the connector.
func sourceSeen(ctx context.Context, b *testing.B, e *testkit.Etcd) <-chan seen {
	source := kvdbsync.NewSource(kvdbsync.Options{
		Name: "etcd", Root: "/vnf-agent/",
		Connector: etcd.New(etcd.Config{Endpoints: []string{e.Addr}}, slog.New(slog.DiscardHandler)),
	})
	go func() {
		if err := source.Run(ctx); err != nil {
			b.Error(err)
		}
	}()
	<-source.Ready()
	source.Take()
	out := make(chan seen, 100)
	go func() {
		defer close(out)
		for {
			select {
			case <-source.Ready():
			case <-ctx.Done():
				return
			}
			c, _ := source.Take()
			now := time.Now()
			for _, ev := range c.Events {
				out <- seen{"/vnf-agent/" + ev.Key, now}
			}
		}
	}()
	return out
}

// BenchmarkList100k is a cold start, beside a bare client that gets everything at once.
func BenchmarkList100k(b *testing.B) {
	e := testkit.StartEtcd(b, testkit.EtcdOptions{})
	client := bareClient(b, clientv3.Config{Endpoints: []string{e.Endpoint}})
	for i := 0; i < conformance.BenchKeys; i += 100 {
		var ops []clientv3.Op
		for j := range 100 {
			p := conformance.BenchPair(root, i+j)
			ops = append(ops, clientv3.OpPut(p.Key, string(p.Value)))
		}
		if _, err := client.Txn(b.Context()).Then(ops...).Commit(); err != nil {
			b.Fatal(err)
		}
	}
	c := etcd.New(etcd.Config{Endpoints: []string{e.Addr}}, slog.New(slog.DiscardHandler))
	conformance.BenchmarkList(b, c, root, func() []kvdbsync.Pair {
		answer, err := client.Get(b.Context(), root, clientv3.WithPrefix())
		if err != nil {
			b.Fatal(err)
		}
		pairs := make([]kvdbsync.Pair, len(answer.Kvs))
		for i, kv := range answer.Kvs {
			pairs[i] = kvdbsync.Pair{Key: string(kv.Key), Value: kv.Value}
		}
		return pairs
	})
}
