package agent

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"

	"github.com/keyplane/keyplane/agent/internal/goruntime"
	"github.com/keyplane/keyplane/agent/internal/manager"
	"github.com/keyplane/keyplane/client"
	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/descriptors/netalloc"
	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/internal/capability"
	"github.com/keyplane/keyplane/internal/logs"
	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	facts "github.com/keyplane/keyplane/models/describe"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/northbound/kvdb"
	"github.com/keyplane/keyplane/northbound/metrics"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/northbound/rest/counters"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/northbound/rest/past"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/orchestrator/publish"
	"github.com/keyplane/keyplane/orchestrator/trial"
	"github.com/keyplane/keyplane/scheduler"
)

// An assembly is an agent while it is created.
type assembly struct {
	*settings
	// The content of all files, complete and valid before the first part is created.
	conf     configuration
	memory   *budget.Budget // for texts of sources that are parsed
	requests *budget.Budget // for requests by HTTP and gRPC, and their answers
	stores   stores
	bounds   kvdbsync.Bounds // of the content of stores
	socket   kvdb.Server
	// Released after all tasks have ended, so that no second agent programs the network
	// meanwhile.
	mine  ownership
	known state
	past  *past.Log // nil: nothing is saved
	out   io.Writer // of the transaction log
	Parts
	loggers *logs.Table // of all components

	below, above []Task   // see runTasks
	closers      []func() // called in reverse order
	applied      announcer
	trials       *trial.Trials
	// Shared by the HTTP server, the metrics and the stores that receive the agent's health.
	health *health.Health
	// All figures of /metrics; its registry is Parts.Metrics.
	figures *metrics.Metrics
}

const (
	// sourceMemory is the memory, in bytes, that texts of sources take together while they are
	// parsed. One of them may need more; it is then parsed alone. Requests have a budget of
	// their own, so a client that is slow to read its answer delays no source.
	sourceMemory = 16 << 20
	// requestMemory is the same for the requests to the HTTP server.
	requestMemory = 16 << 20
)

// serve runs the agent: it creates the parts, connects them, and runs them until ctx ends.
//
//	step          parts                                   task
//	configure     files, models                           values of the settings
//	declare       stores                                  the desired state, one source each
//	own           socket, state folder, leases            one agent per label, from before planning until the end
//	describe      scheduler, southbounds                  the actual state
//	merge         orchestrator                            one desired state of all sources
//	offer         HTTP, gRPC, northbounds, publishers     everything for people and programs
func serve(ctx context.Context, s *settings, loggers *logs.Table, out io.Writer) error {
	log := loggers.Logger("agent")
	service, err := manager.Open(s.options.managerSocket())
	if err != nil {
		return err
	}
	a := assembly{settings: s, memory: budget.New(sourceMemory), requests: budget.New(requestMemory), out: out, Parts: Parts{Label: s.Label, Log: log, served: &served{}}, loggers: loggers}
	defer a.close()
	for _, step := range []func(context.Context) error{a.configure, a.declare, a.own, a.describe, a.merge, a.offer} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	a.above = append(a.above, Task{"announcer", func(ctx context.Context) error { return a.applied.announce(ctx, service) }})
	if err := a.watch(service.Notify); err != nil {
		return err
	}
	warnUnused(loggers, log)
	if !s.options.lacks(Linux) {
		warnUnprivileged(capability.Has, log)
	}
	log.Info("agent runs", "label", s.Label, "stores", a.stores.names(), "pid", os.Getpid())
	a.above = append(a.above, Task{"ready", service.Ready})
	defer service.Stopping()
	return runTasks(ctx, log, a.below, a.above, a.exit())
}

// close closes the parts, the newest first.
func (a *assembly) close() {
	for _, do := range slices.Backward(a.closers) {
		do()
	}
}

// closing has close called at the end. Errors of the end have no effect.
func (a *assembly) closing(close func() error) {
	a.closers = append(a.closers, func() { _ = close() })
}

// configure reads the configuration files.
func (a *assembly) configure(context.Context) (err error) {
	a.conf, err = readConfig(a.settings, a.Log)
	if err != nil {
		return err
	}
	a.Parts.files = a.conf.files
	a.warnOlder()
	a.warnProxy()
	return nil
}

// declare opens the stores, each a source of the orchestrator.
func (a *assembly) declare(context.Context) (err error) {
	a.Models, err = models.BuiltIn().With(a.options.Models...)
	if err != nil {
		return fmt.Errorf("Options.Models: %w", err)
	}
	for _, m := range a.options.Models {
		if err := facts.Check(m); err != nil {
			return fmt.Errorf("Options.Models: %w", err)
		}
	}
	a.bounds = a.conf.orchestrator.boundsIn(goruntime.Memory(), a.settings.countStores(a.conf.files))
	a.stores, err = openStores(a.settings, a.conf.files, a.conf.orchestrator, a.bounds, a.Models, a.memory, a.loggers)
	a.closing(a.stores.Close)
	if err != nil {
		return err
	}
	a.Stores = a.stores.byName()
	return a.needDeclarer(a.stores, a.Log)
}

// own makes this agent the only one with its label: on this host by the socket, through which agentctl
// edits the stores, and by the state folder; for what comes from a store, by a lease there.
func (a *assembly) own(ctx context.Context) (err error) {
	a.socket = kvdb.Server{Socket: cmp.Or(a.Socket, reach.DefaultSocket(a.Parts.Label)), Label: a.Parts.Label, Group: socketGroup(user.LookupGroup, os.Geteuid(), os.Getegid()), Stores: a.stores.editable(), ByPriority: a.stores.byPriority(), Log: a.loggers.Logger("kvdb")}
	if err := a.socket.Listen(ctx); err != nil {
		return err
	}
	a.closers = append(a.closers, a.socket.Close)
	folder := a.conf.orchestrator.stateDir(a.Parts.Label, a.options.env)
	a.mine, err = own(ctx, folder, a.Parts.Label, a.Log)
	if err != nil {
		return err
	}
	a.closing(a.mine.Close)
	// The scheduler is created below: sources use it, but only once they run.
	a.stores.watch(a.mine.self, kvdbsync.Options{
		Root: a.root(), Prefix: "config/", Known: append(published(), a.options.Folders...), AntiEntropy: a.conf.orchestrator.AntiEntropy, Bounds: a.bounds,
		Decode: a.decode,
	})
	a.known = openState(folder, !a.options.lacks(VPP), a.Log)
	a.closers = append(a.closers, a.known.Close)
	a.below = slices.Concat(a.known.tasks(a.mine), a.stores.keepers(), []Task{{"socket", a.socket.Run}, {"ownership", a.mine.guard.Run}})
	return nil
}

// decode decodes a value of a source. Large values of all sources share the memory for that.
// Whoever has it only computes, so it is soon free.
func (a *assembly) decode(e kvdbsync.Event) any {
	leave, err := a.memory.Enter(context.Background(), int64(len(e.Value))*orchestrator.DecodingCost)
	if err != nil {
		return nil // never: the orchestrator would decode it
	}
	defer leave()
	return orchestrator.Decode(a.Scheduler, a.Log, e)
}

// describe creates the scheduler, and registers the descriptors of all southbounds.
func (a *assembly) describe(context.Context) (err error) {
	options := a.conf.scheduler.options(a.known, a.loggers.Logger("kvscheduler"), a.out)
	options.Models, options.FieldChecks = a.Models, limits.Validation
	a.Scheduler = scheduler.New(options)
	if a.known.history != nil {
		a.past = past.New(past.Options{Store: a.known.history, History: a.Scheduler, Log: a.Log})
		a.closers = append(a.closers, a.past.Save)
		a.below = append(a.below, Task{"past transactions", a.past.Run})
	}
	if a.known.deaths != nil {
		a.conf.vpp.Memory = a.known.deaths
	}
	if a.known.settings != nil {
		a.conf.vpp.Settings = a.known.settings
	}
	if a.known.links != nil {
		a.conf.linux.Known = a.known.links
	}
	if a.known.namespaces != nil {
		a.conf.linux.KnownNamespaces = a.known.namespaces
	}
	a.Linux, a.VPP, err = southbounds(a.Scheduler, a.conf, a.options, a.mine.self, a.loggers)
	if err != nil {
		return err
	}
	if len(a.stores) == 0 {
		// No transaction reads the system back at the start. Plans would have all that stands created again.
		_ = a.Scheduler.Refresh() // fails only for names
	}
	a.below = append(a.below, Task{"scheduler", a.Scheduler.Run})
	if a.Linux != nil {
		a.below = append(a.below, Task{"linux", a.Linux.Run})
	}
	if a.VPP != nil {
		a.below = append(a.below, Task{"vpp", a.VPP.Run})
	}
	a.measure()
	added, err := a.added(a.options.Descriptors)
	a.below = append(a.below, added...)
	return err
}

// merge creates the orchestrator of the stores.
func (a *assembly) merge(context.Context) error {
	applied, started := func() {}, func() {}
	if a.options.process {
		applied, started = goruntime.AllowHeapGrowth(a.options.Env, goruntime.Memory(), func(scarce bool) { a.memory.Tighten(scarce); a.requests.Tighten(scarce) })
	}
	a.applied = announcer{a.Scheduler, wake.New(), applied, started}
	options := a.conf.orchestrator.options(a.stores.layers(), a.known, a.conf.scheduler.retry(), a.loggers.Logger("orchestrator"))
	a.health = newHealth(a.Scheduler, a.VPP, a.options.Name)
	options.Complete = a.complete
	a.trials = trial.New(a.known.trialOptions(options.Layers.Volatile, options.Log))
	options.First = a.trials.Due()
	options.Decoding = a.memory
	a.Orchestrator = &Layers{Orchestrator: orchestrator.New(a.Scheduler, options), trials: a.trials}
	a.trials.Serve(a.Orchestrator.Orchestrator)
	a.health.Sources, a.health.Unsaved = a.Orchestrator, a.known.failure
	a.Client = client.NewLocal(a.Scheduler, a.Orchestrator, client.Options{})
	a.above = append(a.stores.tasks(), Task{"orchestrator", a.Orchestrator.Run}, Task{"trials", a.trials.Run})
	return nil
}

// complete says that all values are declared.
func (a *assembly) complete() {
	a.health.Complete()
	a.applied.complete.Set()
	if a.Linux != nil {
		a.Linux.Complete()
	}
}

// offer creates the northbounds, and the publishers that write status into the stores.
func (a *assembly) offer(context.Context) error {
	clients := a.Orchestrator
	figures, err := a.observe()
	if err != nil {
		return err
	}
	// First, because it says what else is served.
	added, err := a.added(a.options.Northbounds)
	if err != nil {
		return err
	}
	// Over TCP the configuration says who may do what. Whoever may open the socket may do everything.
	web := rest.Server{Config: a.conf.http, Options: withSouthbounds(rest.Options{
		Scheduler: a.Scheduler, Sources: a.Orchestrator, Declarer: clients, Previewer: a.Orchestrator, Contents: a.Orchestrator, Trials: a.trials, Files: a.stores.ofFiles(), Label: a.Parts.Label, Version: about(a.options.Name), Health: a.health,
		Telemetry: figures.addTo(counters.Readers{Configurator: clients.configuratorStats}), Logs: levels{a.loggers},
		Secrets: a.older(), Socket: a.socket.Socket, MaxBody: a.conf.http.MaxBodyBytes, Memory: a.requests, Paths: a.served.paths, Log: a.loggers.Logger("http"),
	}, a.Linux, a.VPP)}
	if a.past != nil {
		web.Options.Past = a.past
	}
	if err := web.Options.CheckPaths(); err != nil {
		return fmt.Errorf("Options.Northbounds: %w", err)
	}
	ended := make(chan struct{})
	a.socket.Beside, a.socket.Ending = rest.Handler(ofSocket(web.Options, ended)), ended
	if !a.options.lacks(HTTP) {
		a.above = append(a.above, Task{"http", web.Run})
	}
	services := withEvents(grpc.Options{
		Scheduler: a.Scheduler, Layers: clients, Label: a.Parts.Label, Socket: a.socket.Socket, Metrics: a.Metrics, Services: a.served.services, Memory: web.Options.Memory, Log: a.loggers.Logger("grpc"),
	}, a.Parts)
	if figures.poller != nil { // telemetry.conf allows it
		services.Counters = figures.poller.InterfaceStats
	}
	calls := grpc.Server{Config: a.conf.grpc, Options: services}
	if !a.options.lacks(GRPC) {
		a.socket.Calls = calls.Private()
		a.above = append(a.above, Task{"grpc", calls.Run})
	}
	a.above = append(a.above, added...)
	a.above = append(a.above, figures.tasks...)
	a.below = slices.Concat(a.below,
		a.stores.publishers(a.root(), a.conf.orchestrator.publishing(a.PublishStatus), a.Scheduler, a.Log),
		a.stores.watchers(a.root(), a.conf.vpp.Interfaces.StatusPublishers, a.VPP, a.Log),
		a.stores.registrars(a.root(), a.VPP, a.Log),
		a.stores.healthPublishers(a.root(), a.conf.orchestrator.PublishHealth, a.health, a.Log),
		a.stores.predecessors(a.root(), a.health.Started, a.Log),
		a.stores.summarizers(a.conf.orchestrator.PublishSummary, publish.Summaries{
			Label: a.Parts.Label, Version: a.health.Version.Version, Scheduler: a.Scheduler, Period: a.conf.orchestrator.SummaryPeriod, Log: a.Log,
		}))
	return nil
}

// ofSocket returns o for the agent's own socket. It shows secrets, because only administrators of this host can open
// it. Its streams end when ended is closed.
func ofSocket(o rest.Options, ended <-chan struct{}) rest.Options {
	o.Secrets, o.Ended = true, ended
	return o
}

// southbounds registers allocated addresses, Linux and VPP. The plugins resolve shared
// names through each other: host is set before any of these functions runs. A plugin that
// the agent is without is nil.
func southbounds(sched *scheduler.Scheduler, conf configuration, o Options, self owner.Holder, loggers *logs.Table) (host *linux.Plugin, plane *vpp.Plugin, err error) {
	book, err := netalloc.Register(sched)
	if err != nil {
		return nil, nil, err
	}
	conf.linux.Allocations, conf.vpp.Allocations = book, book
	if !o.lacks(VPP) {
		conf.vpp.Log, conf.vpp.Label, conf.vpp.Installation = loggers.Logger("vpp"), self.Label, self.Installation
		if !o.lacks(Linux) {
			conf.vpp.Lives = func(installation string) bool { return host.Lives(installation) }
			conf.vpp.LinuxHost = func(name string) (string, bool, bool) { return host.HostName(name) }
			conf.vpp.RaiseLink = func(name string) error { return host.RaiseLink(name) }
			conf.vpp.HasLink = func(name string) bool { return host.HasLink(name) }
		}
		plane, err = vpp.Register(sched, conf.vpp)
		if err != nil {
			return nil, nil, err
		}
		conf.linux.TAPHost = plane.TAPHost
	}
	if !o.lacks(Linux) {
		conf.linux.Label, conf.linux.Installation, conf.linux.Log = self.Label, self.Installation, loggers.Logger("linux")
		host, err = linux.Register(sched, conf.linux)
	}
	return host, plane, err
}
