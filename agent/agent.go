package agent

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/mdlayher/sdnotify"

	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/descriptors/netalloc"
	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models/structured/document"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/northbound/kvdb"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// serve runs the agent: it creates the parts, connects them, and runs them until ctx ends.
//
//	part                  task
//	stores                the desired state, one orchestrator layer each
//	ownership             one agent per label, from before planning until the end
//	state                 knowledge of earlier runs
//	scheduler, plugins    the actual state
//	web, calls, socket    HTTP, gRPC and agentctl
//	publishers            status, written back into stores
func serve(ctx context.Context, s *settings, log *slog.Logger, out io.Writer) error {
	manager, err := newNotifier()
	if err != nil {
		return err
	}
	defer manager.Close()
	conf, err := readConfig(s, log)
	if err != nil {
		return err
	}

	// The desired state: stores, each a source of the orchestrator.
	gate := document.NewGate()
	stores, err := openStores(s, conf.files, conf.orchestrator, gate, log)
	if err != nil {
		return err
	}
	defer stores.Close()

	// Ownership: one agent per label, from before planning until the end. The socket,
	// through which agentctl edits the stores, also enforces it.
	socket := kvdb.Server{Socket: cmp.Or(s.Socket, kvdb.DefaultSocket(s.Label)), Label: s.Label, Stores: stores.editable(), Log: log}
	if err := socket.Listen(ctx); err != nil {
		return err
	}
	defer socket.Close()
	folder := conf.orchestrator.stateDir(s.Label)
	mine, err := own(ctx, folder, s.Label, log)
	if err != nil {
		return err
	}
	defer mine.Close()
	var sched *scheduler.Scheduler // made below: keepers and sources use it, but only once they run
	pause := func(ctx context.Context) func() { return sched.Pause(ctx) }
	stores.watch(mine.self, pause, kvdbsync.Options{
		Root: s.root(), Prefix: "config/", AntiEntropy: conf.orchestrator.AntiEntropy, Bounds: conf.orchestrator.bounds(), Log: log,
		Decode: func(e kvdbsync.Event) any { return orchestrator.Decode(sched, log, e) },
	})
	defer stores.release()
	if err := stores.take(ctx); err != nil {
		return err
	}

	// Knowledge of earlier runs.
	known := openState(folder, log)
	defer known.Close()

	// The actual state: the plugins register their descriptors with the scheduler.
	sched = scheduler.New(conf.scheduler.options(known, log, out))
	if known.deaths != nil {
		conf.vpp.Memory = known.deaths
	}
	host, plane, err := southbounds(sched, conf, mine.self, log)
	if err != nil {
		return err
	}
	announcer := announcer{sched, wake.New(), allowHeapGrowth(os.LookupEnv)}
	merging := conf.orchestrator.options(stores.layers(), known, conf.scheduler.retry(), log)
	health := newHealth(sched, plane)
	merging.Complete = func() { health.Complete(); announcer.complete.Set() }
	orch := orchestrator.New(sched, merging)
	health.Sources = orch
	clients := &layers{Orchestrator: orch}

	// Access by HTTP: everyone who reaches the loopback, or may use the socket.
	web := rest.Server{Config: conf.http, Options: withSouthbounds(rest.Options{
		Scheduler: sched, Sources: orch, Declarer: clients, Label: s.Label, Version: about(), Health: health,
		Telemetry: rest.Telemetry{Configurator: clients.configuratorStats}, MaxBody: conf.http.MaxBodyBytes, Gate: gate, Log: log,
	}, host, plane)}
	socket.Beside = rest.Handler(withSecrets(web.Options)) // only the agent's user can open the socket

	calls := grpc.Server{Config: conf.grpc, Options: grpc.Options{Scheduler: sched, Layers: clients, Log: log}}

	// Publishers write status into stores.
	publishers := slices.Concat(
		stores.publishers(s.root(), conf.orchestrator.publishing(s.PublishStatus), sched, log),
		stores.watchers(s.root(), conf.vpp.Interfaces.StatusPublishers, plane, log),
		stores.healthPublishers(s.root(), conf.orchestrator.PublishHealth, health, log))

	below := slices.Concat(publishers, known.tasks(), stores.keepers(), []task{
		{"scheduler", sched.Run}, {"linux", host.Run}, {"vpp", plane.Run}, {"socket", socket.Run}, {"ownership", mine.guard.Run},
	})
	above := append(stores.tasks(),
		task{"orchestrator", orch.Run}, task{"http", web.Run}, task{"grpc", calls.Run},
		task{"announcer", func(ctx context.Context) error { return announcer.announce(ctx, manager) }})
	log.Info("agent runs", "label", s.Label, "stores", stores.names(), "pid", os.Getpid())
	_ = manager.Notify(sdnotify.Ready)
	defer func() { _ = manager.Notify(sdnotify.Stopping) }()
	return runTasks(ctx, log, below, above, s.exit(sched, log))
}

// exit returns the task that runs when the stores are not watched any more, and the
// scheduler still runs.
func (s *settings) exit(sched *scheduler.Scheduler, log *slog.Logger) task {
	return task{"exit", func(ctx context.Context) error {
		if s.OnExit == "leave" {
			log.Info("network left in place", "on_exit", s.OnExit)
			return nil
		}
		return removeAll(ctx, sched, log)
	}}
}

func withSecrets(o rest.Options) rest.Options {
	o.Secrets = true
	return o
}

// southbounds registers allocated addresses, Linux and VPP. The plugins resolve shared
// names through each other: host is set before any of these functions runs.
func southbounds(sched *scheduler.Scheduler, conf configuration, self owner.Holder, log *slog.Logger) (host *linux.Plugin, plane *vpp.Plugin, err error) {
	book, err := netalloc.Register(sched)
	if err != nil {
		return nil, nil, err
	}
	conf.linux.Allocations, conf.vpp.Allocations = book, book
	conf.vpp.Log, conf.vpp.Label, conf.vpp.Installation = log, self.Label, self.Installation
	conf.vpp.Lives = func(installation string) bool { return host.Lives(installation) }
	conf.vpp.LinuxHost = func(name string) (string, bool) { return host.HostName(name) }
	conf.vpp.RaiseLink = func(name string) error { return host.RaiseLink(name) }
	conf.vpp.HasLink = func(name string) bool { return host.HasLink(name) }
	plane, err = vpp.Register(sched, conf.vpp)
	if err != nil {
		return nil, nil, err
	}
	conf.linux.Label, conf.linux.Installation, conf.linux.Log, conf.linux.TAPHost = self.Label, self.Installation, log, plane.TAPHost
	host, err = linux.Register(sched, conf.linux)
	return host, plane, err
}

// removeAll removes everything that the agent has created.
func removeAll(ctx context.Context, sched *scheduler.Scheduler, log *slog.Logger) error {
	_, err := sched.Commit(ctx, scheduler.Txn{Description: "the agent ends", Replace: true, Retry: scheduler.RetryPolicy{Never: true}})
	if err != nil {
		return fmt.Errorf("removing the network: %w", err)
	}
	log.Info("network removed", "on_exit", "remove")
	return nil
}
