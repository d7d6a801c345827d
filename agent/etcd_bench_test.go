package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

const benchRoot = "/vnf-agent/bench/"

// BenchmarkEtcdPutToCreate is the time from before a put into etcd until Create
// is called, with what the agent has in between, side by side with a bare
// watcher of the same server, for the same puts.
func BenchmarkEtcdPutToCreate(b *testing.B) {
	e := testkit.StartEtcd(b, testkit.EtcdOptions{})
	client := etcdClient(b, e)
	created := agentOver(b, e, client)
	barely := client.Watch(b.Context(), benchRoot, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-barely
	var bare, ours []time.Duration
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		putInterface(b, client, i)
		<-barely
		bare = append(bare, time.Since(begun))
		ours = append(ours, (<-created).Sub(begun))
	}
	slices.Sort(bare)
	slices.Sort(ours)
	for _, p := range []int{50, 99} {
		us := func(of []time.Duration) float64 { return float64(of[len(of)*p/100].Microseconds()) }
		b.ReportMetric(us(bare), fmt.Sprintf("bare-p%d-us", p))
		b.ReportMetric(us(ours), fmt.Sprintf("agent-p%d-us", p))
	}
}

// BenchmarkEtcd10kPuts puts 10,000 keys as fast as etcd takes them from 32 writers, and tells how long after the last put
// had returned all were created. of-unwatched compares the time of the puts with that while nobody watches.
func BenchmarkEtcd10kPuts(b *testing.B) {
	const keys = 10_000
	var unwatched, watched, behind time.Duration
	for b.Loop() {
		unwatched += putAll(b, etcdClient(b, testkit.StartEtcd(b, testkit.EtcdOptions{})), keys)

		e := testkit.StartEtcd(b, testkit.EtcdOptions{})
		client := etcdClient(b, e)
		created := agentOver(b, e, client)
		watched += putAll(b, client, keys)
		returned := time.Now()
		var last time.Time
		for range keys {
			last = <-created
		}
		behind += max(0, last.Sub(returned))
	}
	b.ReportMetric(keys*float64(b.N)/watched.Seconds(), "puts/s")
	b.ReportMetric(float64(behind.Microseconds())/float64(b.N)/1000, "ms-behind")
	b.ReportMetric(watched.Seconds()/unwatched.Seconds(), "of-unwatched")
}

// putAll puts so many keys from 32 writers, and returns how long that took.
func putAll(b *testing.B, client *clientv3.Client, keys int) time.Duration {
	const writers = 32
	begun := time.Now()
	var g errgroup.Group
	for w := range writers {
		g.Go(func() error {
			for i := w; i < keys; i += writers {
				putInterface(b, client, i)
			}
			return nil
		})
	}
	_ = g.Wait()
	return time.Since(begun)
}

func etcdClient(b *testing.B, e *testkit.Etcd) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	return client
}

func putInterface(b *testing.B, client *clientv3.Client, i int) {
	name := fmt.Sprintf("if%d", i)
	key := benchRoot + models.For[*interfaces.Interface]().KeyOf(name)
	if _, err := client.Put(b.Context(), key, fmt.Sprintf(`{"name":%q,"type":"VETH","enabled":true,"mtu":1500}`, name)); err != nil {
		b.Error(err)
	}
}

// agentOver is what stands between etcd and the verbs, with verbs that only say
// when they were called.
func agentOver(b *testing.B, e *testkit.Etcd, client *clientv3.Client) <-chan time.Time {
	type none = struct{}
	created := make(chan time.Time, 20_000)
	log := slog.New(slog.DiscardHandler)
	sched := scheduler.New(scheduler.Options{Log: log, TransactionLog: txnlog.New(txnlog.Options{Out: io.Discard})})
	_, err := scheduler.Register(sched, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Create: func(context.Context, string, *interfaces.Interface) (none, error) {
			created <- time.Now()
			return none{}, nil
		},
		Delete: func(context.Context, string, *interfaces.Interface, none) error { return nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	source := kvdbsync.NewSource(kvdbsync.Options{
		Name: "etcd", Root: benchRoot, Prefix: "config/", Log: log,
		Connector: etcd.New(etcd.Config{Endpoints: []string{e.Addr}}, log),
		Decode:    func(e kvdbsync.Event) any { return orchestrator.Decode(sched, log, e) },
	})
	orch := orchestrator.New(sched, orchestrator.Options{Log: log, Sources: []orchestrator.Source{{Name: "etcd", Feed: source}}})
	ctx, cancel := context.WithCancel(context.Background())
	var g errgroup.Group
	for _, run := range []func(context.Context) error{sched.Run, source.Run, orch.Run} {
		g.Go(func() error { return run(ctx) })
	}
	b.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			b.Error(err)
		}
	})
	putInterface(b, client, -1) // a probe: once it is there, all is running
	<-created
	return created
}
