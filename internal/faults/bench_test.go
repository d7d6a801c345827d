package faults

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
	"github.com/keyplane/keyplane/internal/testkit"
)

// BenchmarkReconnect parts an agent from a store with 100,000 keys for ten seconds,
// in which ten of them change, and takes the time from the beginning of the watch
// that succeeds to the last operation; beside a bare client's listing in the same run.
func BenchmarkReconnect(b *testing.B) {
	for _, k := range stores.Kinds() {
		if k.Can&stores.CutAny == 0 {
			continue
		}
		b.Run(k.Name, func(b *testing.B) {
			for b.Loop() {
				reconnect(b, k)
			}
		})
	}
}

func reconnect(b *testing.B, k stores.Kind) {
	scale := full()
	scale.Keys, scale.Stop = 100_000, 10*time.Second
	r := newRun(b, k, 0, scale, 1)
	r.blind = true
	r.Put(r.names(r.Scale.Keys)...)
	r.follow()
	before, _ := r.Agent.South.Verbs()
	r.cut()
	for i := range 5 {
		r.Put(r.name(1000 * i))
	}
	for i := range 3 {
		r.Delete(r.name(1000*i + 1))
	}
	r.Put("new1", "new2")
	r.linger()
	r.heal()
	r.Store.Heal()
	r.await("the changes of the cut")
	verbs, last := r.Agent.South.Verbs()
	if n := verbs - before; n != 10 {
		b.Errorf("%d operations were executed for 10 changes", n)
	}
	begun := time.Now()
	if _, err := r.Store.List(b.Context()); err != nil {
		b.Fatal(err)
	}
	bare := time.Since(begun)
	ours := last.Sub(r.Agent.watches.lastBegun())
	b.ReportMetric(ours.Seconds(), "s/list-and-apply")
	b.ReportMetric(bare.Seconds(), "s/bare-list")
	b.ReportMetric(ours.Seconds()/bare.Seconds(), "of-bare")
	b.ReportMetric(last.Sub(r.healed).Seconds(), "s/since-the-line-is-back")
}

// BenchmarkHerd has 200 agents with 500 keys each follow one etcd, which is killed,
// away for a while, and back. Each agent's first key changes as soon as etcd serves
// again; the time is until all agents have applied theirs. The load is what
// etcd counts of itself from its start until then.
func BenchmarkHerd(b *testing.B) {
	for _, away := range []time.Duration{0, 10 * time.Second, time.Minute} {
		b.Run(fmt.Sprintf("away=%v", away), func(b *testing.B) {
			for b.Loop() {
				herd(b, away)
			}
		})
	}
}

const herdAgents, herdKeys = 200, 500

func herd(b *testing.B, away time.Duration) {
	e := testkit.StartEtcd(b, testkit.EtcdOptions{})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close() })
	agents := make([]*Agent, herdAgents)
	ctx, cancel := context.WithCancel(context.Background())
	var running errgroup.Group
	b.Cleanup(func() {
		cancel()
		if err := running.Wait(); err != nil {
			b.Error(err)
		}
	})
	want := map[string]string{}
	for i := range herdKeys {
		want[fmt.Sprintf("if%d", i)] = "v1"
	}
	for i := range agents {
		agents[i] = herdAgent(b, client, e, i, want)
		running.Go(func() error { return agents[i].Run(ctx) })
	}
	awaitAll(b, agents, want)

	e.Kill()
	timer := time.NewTimer(away)
	<-timer.C
	e.Start()
	back := time.Now()
	want["if0"] = "v2"
	for i := range agents {
		if _, err := client.Put(b.Context(), herdKey(i, "if0"), string(stores.ValueOf("if0", "v2"))); err != nil {
			b.Fatal(err)
		}
	}
	reportHerd(b, awaitAll(b, agents, want), back, e)
}

func reportHerd(b *testing.B, last []time.Time, back time.Time, e *testkit.Etcd) {
	slices.SortFunc(last, time.Time.Compare)
	b.ReportMetric(last[len(last)/2].Sub(back).Seconds(), "s/half-of-them")
	b.ReportMetric(last[len(last)-1].Sub(back).Seconds(), "s/all")
	load := metricsOf(b, e)
	b.ReportMetric(load["etcd_mvcc_range_total"], "ranges")
	b.ReportMetric(load["etcd_debugging_mvcc_watcher_total"], "watchers")
	b.ReportMetric(load["process_cpu_seconds_total"], "etcd-cpu-s")
	b.ReportMetric(load["process_resident_memory_bytes"]/(1<<20), "etcd-MiB")
}

func herdKey(agent int, name string) string {
	return fmt.Sprintf("/vnf-agent/herd%d/%s%s", agent, stores.KeyPrefix(), name)
}

// herdAgent writes the keys of one agent, and makes it.
func herdAgent(b *testing.B, client *clientv3.Client, e *testkit.Etcd, i int, keys map[string]string) *Agent {
	var ops []clientv3.Op
	for name, text := range keys {
		ops = append(ops, clientv3.OpPut(herdKey(i, name), string(stores.ValueOf(name, text))))
	}
	for some := range slices.Chunk(ops, 128) {
		if _, err := client.Txn(b.Context()).Then(some...).Commit(); err != nil {
			b.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	agent, err := newAgent(agentOptions{
		connector: etcd.New(etcd.Config{Endpoints: []string{e.Addr}}, log), root: fmt.Sprintf("/vnf-agent/herd%d/", i),
		south: newSouthbound(map[string]string{}, func(history.Change) error { return nil }), log: log,
	})
	if err != nil {
		b.Fatal(err)
	}
	return agent
}

// awaitAll waits until want stands everywhere, and returns when it did.
func awaitAll(b *testing.B, agents []*Agent, want map[string]string) (last []time.Time) {
	late := time.NewTimer(2 * time.Minute)
	defer late.Stop()
	for i, a := range agents {
		select {
		case <-a.South.Expect(want):
		case <-late.C:
			b.Fatalf("agent %d has not come right: %+v", i, a.Source.Health())
		}
		_, at := a.South.Verbs()
		last = append(last, at)
	}
	return last
}

// metricsOf reads what etcd counts.
func metricsOf(b *testing.B, e *testkit.Etcd) map[string]float64 {
	answer, err := http.Get(e.Endpoint + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	out := map[string]float64{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		var n float64
		if _, err := fmt.Sscan(value, &n); err == nil {
			out[name] = n
		}
	}
	return out
}
