package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/keyplane/keyplane/client"
	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/scheduler"
)

// An Addition adds to the parts of an agent, and returns the tasks that run with it.
type Addition func(Parts) ([]Task, error)

// Parts are the parts of an agent that an Addition can use.
type Parts struct {
	// Label is the name of the agent. Its keys begin with /vnf-agent/LABEL/.
	Label string
	// The agent's log, for the program's own parts.
	Log *slog.Logger
	// Models are all models that the agent knows.
	Models *models.Registry
	// Scheduler takes descriptors until it runs, and then transactions.
	Scheduler *scheduler.Scheduler
	// Orchestrator merges the stores and the layers of programs. A northbound declares
	// values with its Declare. It is nil for Descriptors, which come first.
	Orchestrator *Layers
	// Client declares and reads values in this process, as the data source localclient. It
	// is nil for Descriptors.
	Client client.Client
	// Linux and VPP are the built-in southbounds: their connections, and the metadata of
	// their interfaces. They are nil if the agent is without them.
	Linux *linux.Plugin
	VPP   *vpp.Plugin
	// Stores are the configured stores, by the names of their sources. With kvdbsync.Source a program
	// follows keys of its own there, and if a store implements them, it writes with kvdbsync.Writer, and
	// publishes with kvdbsync.Publisher. The agent closes them after all tasks have ended.
	Stores map[string]kvdbsync.Connector
	// Metrics takes Prometheus collectors of the program, which GET /metrics then shows. A
	// name that another collector has is an error. Collect is called for each request, on
	// any goroutine.
	Metrics prometheus.Registerer

	files  files
	served *served
}

// A Path of HTTP that a program adds.
type Path = rest.Path

// served has what the additions serve.
type served struct {
	paths    []Path
	services []func(grpc.ServiceRegistrar)
}

// ServeHTTP adds paths to those of the agent, on its socket and where http.conf says. Only an
// Addition may call it, until it returns.
func (p Parts) ServeHTTP(paths ...Path) { p.served.paths = append(p.served.paths, paths...) }

// ServeGRPC adds services to those of the agent, on its socket and where grpc.conf says: register calls the
// generated Register functions, once for each listener. A method of which the .proto file does not say
// idempotency_level = NO_SIDE_EFFECTS counts as one that changes something. Only an Addition may call it, until it
// returns.
func (p Parts) ServeGRPC(register func(grpc.ServiceRegistrar)) {
	p.served.services = append(p.served.services, register)
}

// Config reads a configuration file into a struct with yaml tags that holds the defaults. A
// name without a slash is a file in the folder of the flag config-dir. found is false if the
// file does not exist. Unknown keys are logged. If the struct has a method Validate() error,
// its error is returned.
func (p Parts) Config(name string, into any) (found bool, err error) {
	found, err = p.files.load("", name, into)
	if err != nil {
		return found, fmt.Errorf("%w: %w", errConfig, err)
	}
	return found, nil
}

// A Task is a part of the agent that runs.
type Task struct {
	Name string // in errors and logs
	// Run returns nil when its context ends, or an error earlier, which ends the agent.
	Run func(ctx context.Context) error
}

// added calls the additions and returns their tasks.
func (p Parts) added(additions []Addition) (out []Task, err error) {
	for _, add := range additions {
		tasks, err := add(p)
		if err != nil {
			return nil, err
		}
		out = append(out, tasks...)
	}
	return out, nil
}

// A Part is a built-in part that an agent can be without. A store is a part by its name.
type Part string

// The built-in parts.
const (
	Linux    Part = "linux"
	VPP      Part = "vpp"
	HTTP     Part = "http"
	GRPC     Part = "grpc"
	Etcd     Part = "etcd"
	Redis    Part = "redis"
	Consul   Part = "consul"
	Filedb   Part = "filedb"
	Bolt     Part = "bolt"
	Initfile Part = "initfile"
)

// parts returns all built-in parts, each with the flags that have no effect without it.
func parts() map[Part][]string {
	return map[Part][]string{
		Linux:  {"linux-ifplugin-config", "linux-l3plugin-config", "linux-iptablesplugin-config", "linux-nsplugin-config"},
		VPP:    {"govpp-config", "vpp-ifplugin-config"},
		HTTP:   {"http-config", "http-port"},
		GRPC:   {"grpc-config", "grpc-port"},
		Etcd:   {"etcd-config"},
		Redis:  {"redis-config"},
		Consul: {"consul-config"},
		Filedb: {"filedb-config"},
		Bolt:   {"bolt-config"},

		Initfile: {"initfileregistry-config"},
	}
}

// lacks reports whether the agent is without a part.
func (o Options) lacks(p Part) bool { return slices.Contains(o.Without, p) }

// lacksFlag reports whether a flag belongs to a part that the agent is without.
func (o Options) lacksFlag(name string) bool {
	return slices.ContainsFunc(o.Without, func(p Part) bool { return slices.Contains(parts()[p], name) })
}

// check returns the mistakes of the program that uses this package.
func (o Options) check() error {
	var errs []error
	var known []string
	for p := range parts() {
		known = append(known, string(p))
	}
	slices.Sort(known)
	for i, p := range o.Without {
		if _, ok := parts()[p]; !ok {
			errs = append(errs, fmt.Errorf("Options.Without[%d] is %q; expected one of %s", i, p, strings.Join(known, ", ")))
		}
	}
	var names []string
	for _, kind := range o.Stores {
		switch {
		case kind.Name == "" || kind.Open == nil:
			errs = append(errs, fmt.Errorf("Options.Stores: store %q: Name and Open are required", kind.Name))
		case slices.Contains(known, kind.Name) || slices.Contains(names, kind.Name):
			errs = append(errs, fmt.Errorf("Options.Stores: store %q: another part has this name", kind.Name))
		}
		names = append(names, kind.Name)
	}
	return errors.Join(errs...)
}
