package agent

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/agent/internal/goruntime"
	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// A benchVPP is a VPP in a process of its own: a simulated one, or with VPP=binary a
// real one, or with VPP_SOCKET the one that runs there.
type benchVPP struct {
	b      *testing.B
	socket string
	ours   *testkit.VPP // nil: it is not ours to start and end
}

func startVPP(b *testing.B) *benchVPP {
	b.Helper()
	if socket := os.Getenv("VPP_SOCKET"); socket != "" {
		return &benchVPP{b: b, socket: socket}
	}
	ours := testkit.StartVPPOrSim(b)
	return &benchVPP{b, ours.Socket, ours}
}

// empty gives it nothing to know: it is started anew, or what we have made is removed.
func (v *benchVPP) empty(n benchNetwork) {
	v.b.Helper()
	if v.ours != nil {
		v.ours.Kill()
		v.ours.Start()
		return
	}
	bare := dialBare(v.b, v.socket)
	defer bare.sock.Close()
	_, routes := n.values()
	bare.clear(routes)
}

// declare puts values into etcd, many at once.
func declare(b *testing.B, client *clientv3.Client, n benchNetwork) {
	b.Helper()
	var puts []clientv3.Op
	loops, routes := n.values()
	for _, v := range loops {
		puts = append(puts, putOf(b, v))
	}
	for _, v := range routes {
		puts = append(puts, putOf(b, v))
	}
	for some := range slices.Chunk(puts, 100) {
		if _, err := client.Txn(b.Context()).Then(some...).Commit(); err != nil {
			b.Fatal(err)
		}
	}
}

func putOf[V proto.Message](b *testing.B, v V) clientv3.Op {
	b.Helper()
	key, err := models.For[V]().Key(v)
	if err != nil {
		b.Fatal(err)
	}
	value, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	return clientv3.OpPut(benchRoot+key, string(value))
}

// A benchAgent is the agent's way from etcd to VPP, as serve makes it, with what it
// remembers on disk.
type benchAgent struct {
	sched    *scheduler.Scheduler
	source   *kvdbsync.Source
	standing <-chan struct{}
	stop     func()
}

func startBenchAgent(b *testing.B, e *testkit.Etcd, socket string) *benchAgent {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	conf := configuration{scheduler: defaultScheduler(), orchestrator: defaultOrchestrator()}
	known := openState(b.TempDir(), true, log)
	sched := scheduler.New(conf.scheduler.options(known, log, io.Discard))
	patient := vpp.Config{Socket: socket, ProbeTimeout: time.Minute} // whatever else the machine does
	plane, err := vpp.Register(sched, vpp.Options{Log: log, Connection: patient})
	if err != nil {
		b.Fatal(err)
	}
	source := kvdbsync.NewSource(kvdbsync.Options{
		Name: "etcd", Root: benchRoot, Prefix: "config/", Log: log,
		Connector: etcd.New(etcd.Config{Endpoints: []string{e.Addr}}, log),
		Decode:    func(e kvdbsync.Event) any { return orchestrator.Decode(sched, log, e) },
	})
	standing := wake.New()
	merging := conf.orchestrator.options([]orchestrator.Source{{Name: "etcd", Feed: source}}, known, conf.scheduler.retry(), log)
	merging.Complete = standing.Set
	orch := orchestrator.New(sched, merging)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	// As during the start of an agent that has a process to itself.
	percent, limit := debug.SetGCPercent(goruntime.StartGC), debug.SetMemoryLimit(goruntime.AmpleMemory)
	go func() {
		below := append(known.tasks(ownership{folder: &owner.Folder{}}), Task{"scheduler", sched.Run}, Task{"vpp", plane.Run})
		ended <- runTasks(ctx, log, below, []Task{{"source", source.Run}, {"orchestrator", orch.Run}}, Task{"exit", func(context.Context) error { return nil }})
	}()
	stop := func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		known.Close()
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
	return &benchAgent{sched, source, standing.C(), stop}
}
