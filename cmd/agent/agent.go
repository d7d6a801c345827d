package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/descriptors/netalloc"
	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/northbound/kvdb"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// serve is the agent: it makes the parts, gives each what it needs, and runs
// them until ctx ends.
func serve(ctx context.Context, s *settings, log *slog.Logger, out io.Writer) error {
	tell, err := newNotifier(os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		return err
	}
	defer tell.Close()
	if len(s.Idle) > 0 {
		log.Warn("flags have no effect in this release", "flags", s.Idle)
	}
	conf, err := readConfig(s, log)
	if err != nil {
		return err
	}

	// What is wanted: stores, each a layer of the orchestrator.
	stores, err := openStores(s, conf.files, conf.orchestrator, log)
	if err != nil {
		return err
	}
	defer stores.Close()

	// Who owns the label: one agent, from before anything is planned until all is done. The
	// socket, through which agentctl edits the stores, is also a part of that.
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
	var sched *scheduler.Scheduler // made below: keepers pause it, but only once they run
	stores.watch(s.root(), mine.self, conf.orchestrator.AntiEntropy, func(ctx context.Context) func() { return sched.Pause(ctx) }, log)
	defer stores.letGo()
	if err := stores.take(ctx); err != nil {
		return err
	}

	// What is known of earlier runs.
	known := openState(folder, log)
	defer known.Close()

	// What is done: descriptors teach the scheduler what there is.
	sched = scheduler.New(conf.scheduler.options(known, log, out))
	if known.deaths != nil {
		conf.vpp.Memory = known.deaths
	}
	host, plane, err := southbounds(sched, conf, mine.self, log)
	if err != nil {
		return err
	}
	applied := announcer{sched, wake.New(), allowHeapGrowth(os.LookupEnv)}
	orch := orchestrator.New(applied, conf.orchestrator.options(stores.layers(), known, conf.scheduler.retry(), log))

	// Who may look: whoever reaches the loopback, or may use the socket.
	web := rest.Server{Config: conf.http, Options: rest.Options{
		Scheduler: sched, Sources: orch, Label: s.Label, Version: about(), VPP: vppInfo(plane), MaxBody: conf.http.MaxBodyBytes, Log: log,
	}}
	own := web.Options
	own.Secrets = true // only the agent's user can open the socket
	socket.Beside = rest.Handler(own)

	// Who is told: whoever reads the stores that status is published into.
	told := stores.publishers(s.root(), conf.orchestrator.publishing(s.PublishStatus), sched, log)
	told = append(told, stores.watchers(s.root(), conf.vpp.Interfaces.StatusPublishers, plane, log)...)

	below := slices.Concat(told, known.tasks(), stores.keepers(), []task{sched.Run, host.Run, plane.Run, socket.Run, mine.guard.Run})
	above := append(stores.tasks(), orch.Run, web.Run, applied.announce(tell))
	log.Info("agent runs", "label", s.Label, "stores", stores.names(), "pid", os.Getpid())
	tell.Tell("READY=1")
	defer tell.Tell("STOPPING=1")
	return runTasks(ctx, below, above, func(ctx context.Context) error {
		if s.OnExit == "leave" {
			log.Info("network left in place", "on_exit", s.OnExit)
			return nil
		}
		return removeAll(ctx, sched, log)
	})
}

// southbounds teaches the scheduler allocated addresses, Linux and VPP, each of which asks
// the other for the names of what they share.
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

// removeAll takes away all that the agent has made.
func removeAll(ctx context.Context, sched *scheduler.Scheduler, log *slog.Logger) error {
	_, err := sched.Commit(ctx, scheduler.Txn{Description: "the agent ends", Replace: true, Retry: scheduler.Retry{Never: true}})
	if err != nil {
		return fmt.Errorf("removing the network: %w", err)
	}
	log.Info("network removed", "on_exit", "remove")
	return nil
}
