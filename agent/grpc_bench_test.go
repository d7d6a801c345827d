package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/linux"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/wait"
	"github.com/keyplane/keyplane/statestore"
)

// A grpcBench is a scheduler for routes and interfaces without a system, an orchestrator with a state folder
// and a folder of files, and a gRPC server.
type grpcBench struct {
	sched *scheduler.Scheduler
	dir   string // of files
	conn  *rpc.ClientConn
}

func startGRPCBench(b *testing.B) grpcBench {
	b.Helper()
	type none = struct{}
	log := slog.New(slog.DiscardHandler)
	out := grpcBench{sched: scheduler.New(scheduler.Options{Log: log}), dir: b.TempDir()}
	_, err := scheduler.Register(out.sched, scheduler.Descriptor[*l3.Route, none]{
		Name: "route", Model: models.For[*l3.Route](),
		Create: func(context.Context, string, *l3.Route) (none, error) { return none{}, nil },
		Update: func(context.Context, string, *l3.Route, *l3.Route, none) (none, error) { return none{}, nil },
		Delete: func(context.Context, string, *l3.Route, none) error { return nil },
	})
	_, ifErr := scheduler.Register(out.sched, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		// As many parts as those of a real interface: its link state and its addresses.
		Derived: func(_ string, v *interfaces.Interface) []scheduler.KeyValue {
			derived := []scheduler.KeyValue{{Key: "linux/interface/state/" + v.GetName() + "/UP", Value: &emptypb.Empty{}}}
			for _, a := range v.GetIpAddresses() {
				derived = append(derived, scheduler.KeyValue{Key: "linux/interface/" + v.GetName() + "/address/" + a, Value: &emptypb.Empty{}})
			}
			return derived
		},
		Create: func(context.Context, string, *interfaces.Interface) (none, error) { return none{}, nil },
		Update: func(context.Context, string, *interfaces.Interface, *interfaces.Interface, none) (none, error) {
			return none{}, nil
		},
		Delete: func(context.Context, string, *interfaces.Interface, none) error { return nil },
	})
	memory, memoryErr := statestore.Open(filepath.Join(b.TempDir(), "intent"), statestore.Options{Log: log})
	files, filesErr := filedb.New(filedb.Config{Paths: []string{out.dir}}, "/vnf-agent/vpp1/", log)
	for _, err := range []error{err, ifErr, memoryErr, filesErr} {
		if err != nil {
			b.Fatal(err)
		}
	}
	source := kvdbsync.NewSource(kvdbsync.Options{
		Name: "filedb", Connector: files, Root: "/vnf-agent/vpp1/", Prefix: "config/", Log: log,
		Decode: func(e kvdbsync.Event) any { return orchestrator.Decode(out.sched, log, e) },
	})
	orch := orchestrator.New(out.sched, orchestrator.Options{
		Sources: []orchestrator.Source{{Name: "filedb", Priority: 1, Feed: source}}, Memory: memory, Log: log,
	})
	ready := make(chan net.Addr, 1)
	config := grpc.Config{Endpoint: "127.0.0.1:0"}
	if err := config.Complete(); err != nil {
		b.Fatal(err)
	}
	server := grpc.Server{Config: config, Options: grpc.Options{Scheduler: out.sched, Layers: orch, Log: log}, Ready: ready}
	ctx, cancel := context.WithCancel(context.Background())
	var running errgroup.Group
	for _, run := range []func(context.Context) error{out.sched.Run, source.Run, orch.Run, server.Run, memory.Run} {
		running.Go(func() error { return run(ctx) })
	}
	b.Cleanup(func() {
		cancel()
		if err := running.Wait(); err != nil {
			b.Error(err)
		}
	})
	out.conn, err = rpc.NewClient("passthrough:///"+(<-ready).String(), rpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { out.conn.Close() })
	return out
}

const benchRoutes = 10_000

// routesIn are n routes of a network of their own.
func routesIn(network, n int) (out []*l3.Route) {
	for i := range n {
		out = append(out, &l3.Route{DstNetwork: fmt.Sprintf("%d.%d.%d.0/24", 11+network%200, i/250, i%250), OutgoingInterface: "veth1", GwAddr: "10.0.0.1", Metric: 5})
	}
	return out
}

func (a grpcBench) update(b *testing.B, routes []*l3.Route) {
	b.Helper()
	_, err := configurator.NewConfiguratorServiceClient(a.conn).Update(b.Context(), &configurator.UpdateRequest{
		FullResync: true, Update: &configurator.Config{LinuxConfig: &linux.ConfigData{Routes: routes}},
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGRPCUpdateOne makes Update calls of one value each. The verbs do nothing, so p50-µs,
// the median of a call, is the time above the verb.
func BenchmarkGRPCUpdateOne(b *testing.B) {
	b.Run("route", func(b *testing.B) {
		routes := routesIn(0, benchRoutes)
		updateOne(b, func(i int) *linux.ConfigData {
			return &linux.ConfigData{Routes: routes[i%benchRoutes : i%benchRoutes+1]}
		})
	})
	b.Run("interface", func(b *testing.B) {
		updateOne(b, func(i int) *linux.ConfigData {
			return &linux.ConfigData{Interfaces: []*interfaces.Interface{{
				Name: fmt.Sprintf("if%d", i), Type: interfaces.Interface_DUMMY, Enabled: true, Mtu: 1400,
				IpAddresses: []string{fmt.Sprintf("10.%d.%d.1/24", i>>8&255, i&255)},
			}}}
		})
	})
}

// updateOne makes Update calls, the i-th of value(i).
func updateOne(b *testing.B, value func(i int) *linux.ConfigData) {
	b.Helper()
	a := startGRPCBench(b)
	client := configurator.NewConfiguratorServiceClient(a.conn)
	var took []time.Duration
	for b.Loop() {
		one := &configurator.UpdateRequest{Update: &configurator.Config{LinuxConfig: value(len(took))}}
		begun := time.Now()
		if _, err := client.Update(b.Context(), one); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkGRPCUpdateRoutes replaces 10,000 routes by others in one Update.
func BenchmarkGRPCUpdateRoutes(b *testing.B) {
	a := startGRPCBench(b)
	for i := 0; b.Loop(); i++ {
		a.update(b, routesIn(i, benchRoutes))
	}
}

// BenchmarkFileRoutes replaces 10,000 routes by others in a file.
func BenchmarkFileRoutes(b *testing.B) {
	a := startGRPCBench(b)
	model := models.For[*l3.Route]()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		var text strings.Builder
		text.WriteString("linuxConfig:\n  routes:\n")
		var keys []string
		for _, r := range routesIn(i, benchRoutes) {
			fmt.Fprintf(&text, "    - {dst_network: %s, outgoing_interface: veth1, gw_addr: 10.0.0.1, metric: 5}\n", r.DstNetwork)
			key, err := model.Key(r)
			if err != nil {
				b.Fatal(err)
			}
			keys = append(keys, key)
		}
		hidden := filepath.Join(b.TempDir(), "routes.yaml")
		if err := os.WriteFile(hidden, []byte(text.String()), 0o600); err != nil {
			b.Fatal(err)
		}
		watch := a.sched.Watch(model.Prefix())
		watch.Take()
		b.StartTimer()
		if err := os.Rename(hidden, filepath.Join(a.dir, "routes.yaml")); err != nil {
			b.Fatal(err)
		}
		for done := false; !done; {
			if _, err := watch.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
			_, done = a.sched.Status(keys[len(keys)-1])
		}
		if err := wait.For(b.Context(), a.sched, keys...); err != nil {
			b.Fatal(err)
		}
		watch.Close()
	}
}

// BenchmarkGRPCSubscribe measures how long after the answer to an Update of 10,000 routes a
// subscriber has all states: lag-ms. The answer comes after the last verb.
func BenchmarkGRPCSubscribe(b *testing.B) {
	a := startGRPCBench(b)
	stream, err := generic.NewManagerServiceClient(a.conn).Subscribe(b.Context(), &generic.SubscribeRequest{})
	if err != nil {
		b.Fatal(err)
	}
	complete := make(chan time.Time)
	go func() {
		for got := 0; ; {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			for _, n := range r.Notifications {
				if n.Status.Status == "CONFIGURED" {
					got++
				}
			}
			if got >= benchRoutes {
				complete <- time.Now()
				got = 0
			}
		}
	}()
	var lag time.Duration
	n := 0
	for ; b.Loop(); n++ {
		a.update(b, routesIn(n, benchRoutes))
		applied := time.Now()
		lag += max(0, (<-complete).Sub(applied))
	}
	b.ReportMetric(float64(lag.Milliseconds())/float64(n), "lag-ms")
}
