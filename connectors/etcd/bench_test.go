package etcd_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// benchOf is a server beside a bare client, which does nothing but watch.
func benchOf(b *testing.B, e *testkit.Etcd) conformance.Bench {
	client := bareClient(b, clientv3.Config{Endpoints: []string{e.Endpoint}})
	return conformance.Bench{
		Connector: etcd.New(etcd.Config{Endpoints: []string{e.Addr}}, slog.New(slog.DiscardHandler)),
		Put: func(p kvdbsync.Pair) error {
			_, err := client.Put(b.Context(), p.Key, string(p.Value))
			return err
		},
		Watch: func(ctx context.Context, prefix string, seen func(key string)) {
			events := client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
			<-events
			go func() {
				for r := range events {
					for _, ev := range r.Events {
						seen(string(ev.Kv.Key))
					}
				}
			}()
		},
	}
}

func BenchmarkPutToTake(b *testing.B) {
	conformance.BenchmarkPut(b, benchOf(b, testkit.StartEtcd(b, testkit.EtcdOptions{})), root)
}

func Benchmark10kPuts(b *testing.B) {
	s, n := benchOf(b, testkit.StartEtcd(b, testkit.EtcdOptions{})), 0
	conformance.BenchmarkPuts(b, func() (conformance.Bench, string) {
		n++
		return s, fmt.Sprintf("/vnf-agent/bench%d/", n)
	})
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
