package agent

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// The figures of VPP: etcd is real, and so is VPP with VPP=binary or VPP_SOCKET;
// otherwise it is simulated. Beside the agent a bare program does the same in the same run: it
// lists etcd, unmarshals the values, and has VPP do what they say, by requests that
// wait for no reply.

// A benchNetwork is loopbacks with an address each, and routes by way of them.
type benchNetwork struct{ loops, routes int }

func (n benchNetwork) values() (loops []*interfaces.Interface, routes []*l3.Route) {
	for i := range n.routes {
		routes = append(routes, benchRoute(i, n.loops))
	}
	return benchLoops(n.loops), routes
}

// BenchmarkVPPCold starts an agent on an etcd with all declared, and an empty VPP, and
// waits until all stands.
func BenchmarkVPPCold(b *testing.B) {
	b.Run("100k-routes", func(b *testing.B) { vppCold(b, benchNetwork{loops: 1, routes: 100_000}) })
	b.Run("5k-interfaces-45k-routes", func(b *testing.B) { vppCold(b, benchNetwork{loops: 5_000, routes: 45_000}) })
}

func vppCold(b *testing.B, n benchNetwork) {
	e, v := testkit.StartEtcd(b, testkit.EtcdOptions{}), startVPP(b)
	client := etcdClient(b, e)
	declare(b, client, n)
	var listed, parsed, installed, cold, bareCPU, coldCPU time.Duration
	for b.Loop() {
		v.empty(n)
		runtime.GC()
		before := processorTime(b)
		times := bareCold(b, client, v.socket)
		bareCPU += processorTime(b) - before
		listed, parsed, installed = listed+times[0], parsed+times[1], installed+times[2]

		v.empty(n)
		runtime.GC()
		before = processorTime(b)
		agent, took := coldAgent(b, e, v, n)
		coldCPU += processorTime(b) - before
		cold += took
		agent.stop()
	}
	v.empty(n)
	bare := listed + parsed + installed
	report := func(d time.Duration, name string) { b.ReportMetric(d.Seconds()/float64(b.N), name) }
	report(listed, "s/bare-list")
	report(parsed, "s/bare-parse")
	report(installed, "s/bare-install")
	report(cold, "s/agent")
	report(bareCPU, "cpu-s/bare")
	report(coldCPU, "cpu-s/agent")
	b.ReportMetric(cold.Seconds()/bare.Seconds(), "of-bare")
}

// coldAgent starts an agent, and tells how long it took until all stood.
func coldAgent(b *testing.B, e *testkit.Etcd, v *benchVPP, n benchNetwork) (*benchAgent, time.Duration) {
	b.Helper()
	begun := time.Now()
	agent := startBenchAgent(b, e, v.socket)
	<-agent.standing
	took := time.Since(begun)
	expectRoutes(b, v, n.routes)
	return agent, took
}

// bareCold is the bare program: how long listing took, unmarshalling, and VPP.
func bareCold(b *testing.B, client *clientv3.Client, socket string) (took [3]time.Duration) {
	b.Helper()
	begun := time.Now()
	answer, err := client.Get(b.Context(), benchRoot, clientv3.WithPrefix())
	if err != nil {
		b.Fatal(err)
	}
	took[0] = time.Since(begun)
	begun = time.Now()
	var loops []*interfaces.Interface
	var routes []*l3.Route
	for _, kv := range answer.Kvs {
		if strings.HasPrefix(string(kv.Key), benchRoot+keys.Interface("").Key()) {
			loops = append(loops, parsedAs(b, new(interfaces.Interface), kv.Value))
		} else {
			routes = append(routes, parsedAs(b, new(l3.Route), kv.Value))
		}
	}
	took[1] = time.Since(begun)
	begun = time.Now()
	bare := dialBare(b, socket)
	defer bare.sock.Close()
	bare.install(loops, routes)
	took[2] = time.Since(begun)
	return took
}

func parsedAs[V proto.Message](b *testing.B, v V, value []byte) V {
	if err := protojson.Unmarshal(value, v); err != nil {
		b.Fatal(err)
	}
	return v
}

// expectRoutes counts what VPP has.
func expectRoutes(b *testing.B, v *benchVPP, want int) {
	b.Helper()
	bare := dialBare(b, v.socket)
	defer bare.sock.Close()
	if got := len(bare.dump()); got != want {
		b.Fatalf("VPP has %d routes, want %d", got, want)
	}
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkVPPPut is the time from before a put of one route into etcd until VPP has
// answered, of the agent; of the put alone; of a bare watcher until it has the value; and of one
// bare request to VPP.
func BenchmarkVPPPut(b *testing.B) {
	e, v := testkit.StartEtcd(b, testkit.EtcdOptions{}), startVPP(b)
	client := etcdClient(b, e)
	n := benchNetwork{loops: 1}
	declare(b, client, n)
	agent, _ := coldAgent(b, e, v, n)
	defer agent.stop()
	routes := agent.sched.Watch(models.For[*l3.Route]().Prefix())
	defer routes.Close()
	routes.Take() // the present ones
	watch := client.Watch(b.Context(), benchRoot, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-watch
	bare := dialBare(b, v.socket)
	defer bare.sock.Close()
	loops := bare.loopbacks()
	var putting, watched, asked, ours []time.Duration
	for b.Loop() {
		n.routes++
		route := benchRoute(n.routes, n.loops)
		put := putOf(b, route)
		stands := make(chan time.Time, 1)
		go func() { stands <- awaitStanding(b, routes) }()
		begun := time.Now()
		if _, err := client.Do(b.Context(), put); err != nil {
			b.Fatal(err)
		}
		putting = append(putting, time.Since(begun))
		<-watch
		watched = append(watched, time.Since(begun))
		ours = append(ours, (<-stands).Sub(begun))
		begun = time.Now()
		bare.change(true, []*l3.Route{route}, loops) // it is there already, which is the same to VPP
		asked = append(asked, time.Since(begun))
	}
	reportLatency(b, "put", putting)
	reportLatency(b, "watch", watched)
	reportLatency(b, "request", asked)
	reportLatency(b, "agent", ours)
	b.ReportMetric(float64((ours[len(ours)/2] - putting[len(putting)/2]).Microseconds()), "beyond-put-p50-us")
	b.ReportMetric(float64((ours[len(ours)/2] - watched[len(watched)/2] - asked[len(asked)/2]).Microseconds()), "more-p50-us")
	v.empty(n)
}

// awaitStanding is when the next route began to stand.
func awaitStanding(b *testing.B, routes *scheduler.Watch[*scheduler.Status]) time.Time {
	for {
		news, err := routes.Next(b.Context())
		if err != nil {
			b.Error(err)
			return time.Now()
		}
		if slices.ContainsFunc(news, func(s *scheduler.Status) bool { return s.State == scheduler.Configured }) {
			return time.Now()
		}
	}
}

func reportLatency(b *testing.B, of string, all []time.Duration) {
	slices.Sort(all)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(all[len(all)*p/100].Microseconds()), fmt.Sprintf("%s-p%d-us", of, p))
	}
}

// BenchmarkVPPRestart has VPP die with many routes, and start a second later with none, as a
// real VPP that crashes. What is measured is from this start until all stands again, beside
// the cold start of the same agent; and from when it answers again.
func BenchmarkVPPRestart(b *testing.B) {
	b.Run("10k-routes", func(b *testing.B) { vppRestart(b, benchNetwork{loops: 1, routes: 10_000}) })
	b.Run("100k-routes", func(b *testing.B) { vppRestart(b, benchNetwork{loops: 1, routes: 100_000}) })
}

func vppRestart(b *testing.B, n benchNetwork) {
	e, v := testkit.StartEtcd(b, testkit.EtcdOptions{}), startVPP(b)
	testkit.Need(b, "a VPP that can be ended: VPP=binary, or the simulated one", v.ours != nil)
	declare(b, etcdClient(b, e), n)
	var cold, restored, answered time.Duration
	relisted := uint64(0) // a restart of VPP needs no listing; a machine that is too busy for a watch lists again
	for b.Loop() {
		v.empty(n)
		runtime.GC()
		agent, took := coldAgent(b, e, v, n)
		cold += took
		runtime.GC()
		listings, history := agent.source.Health().Listings, agent.sched.History()
		last := history[len(history)-1].Seq
		v.ours.Kill()
		<-time.After(time.Second)
		begun := time.Now()
		v.ours.Start()
		answers := time.Now()
		back := awaitReadBack(b, agent, last)
		restored += back.Sub(begun)
		answered += back.Sub(answers)
		expectRoutes(b, v, n.routes)
		relisted += agent.source.Health().Listings - listings
		agent.stop()
	}
	b.ReportMetric(cold.Seconds()/float64(b.N), "s/cold")
	b.ReportMetric(restored.Seconds()/float64(b.N), "s/restored")
	b.ReportMetric(answered.Seconds()/float64(b.N), "s/since-it-answers")
	b.ReportMetric(restored.Seconds()/cold.Seconds(), "of-cold")
	b.ReportMetric(float64(relisted)/float64(b.N), "listings")
}

// awaitReadBack is when the transaction was over that follows VPP's return. It comes after the
// one with the number last, which the history may have forgotten meanwhile.
func awaitReadBack(b *testing.B, agent *benchAgent, last uint64) time.Time {
	tick, late := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-late:
			b.Fatal("VPP is not restored")
		}
		for _, r := range agent.sched.History() {
			if r.Refresh && r.Seq > last {
				return r.Stop
			}
		}
	}
}
