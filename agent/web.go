package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/counts"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/orchestrator/publish"
	"github.com/keyplane/keyplane/orchestrator/trial"
	linuxif "github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// newHealth returns what tells whether the network is as declared.
func newHealth(sched *scheduler.Scheduler, plane *vpp.Plugin, program string) *health.Health {
	return &health.Health{
		Scheduler: sched, Version: about(program), Started: time.Now(),
		Southbounds: func() []health.Southbound {
			if plane == nil {
				return nil
			}
			i := plane.Connection()
			return []health.Southbound{{Name: vpp.ConnectionName, Connected: i.Connected, Reached: i.Connections > 0, Since: i.Since, Err: i.Err}}
		},
	}
}

// withSouthbounds adds to the HTTP API the paths of Linux and VPP, unless they are nil.
func withSouthbounds(o rest.Options, host *linux.Plugin, plane *vpp.Plugin) rest.Options {
	if plane != nil {
		o.VPP, o.Command, o.Proxy = vppInfo(plane), plane.Command, plane.Proxy()
		o.Telemetry.Command = plane.Command
	}
	if host == nil {
		return o
	}
	o.Telemetry.LinuxInterfaces = func(ctx context.Context) ([]counts.LinuxInterfaceStats, error) {
		all, err := host.Counters(ctx)
		out := make([]counts.LinuxInterfaceStats, len(all))
		for i, c := range all {
			out[i] = counts.LinuxInterfaceStats{
				Name: c.Name, Type: typeOf(o.Scheduler, c.Name), Index: c.Index, HostName: c.HostName,
				RxPackets: c.RxPackets, RxBytes: c.RxBytes, RxErrors: c.RxErrors, RxDropped: c.RxDropped,
				TxPackets: c.TxPackets, TxBytes: c.TxBytes, TxErrors: c.TxErrors, TxDropped: c.TxDropped,
			}
		}
		return out, err
	}
	return o
}

// typeOf returns the number of the type of a Linux interface; 0: it is gone meanwhile.
func typeOf(sched *scheduler.Scheduler, name string) int32 {
	st, _ := sched.Status(models.For[*linuxif.Interface]().KeyOf(name))
	if st == nil {
		return 0
	}
	v, _ := st.Actual.(*linuxif.Interface)
	return int32(v.GetType())
}

// Layers is the orchestrator for clients and northbounds. Their changes wait for trials, and are counted.
type Layers struct {
	*orchestrator.Orchestrator
	trials *trial.Trials // no change passes by them

	mu sync.Mutex // guards stats
	// By operation: Resync, Update or Delete. Durations are in seconds.
	stats map[string]counts.Method
}

// Declare is that of the orchestrator. The error is trial.ErrOnTrial while the layer has a trial.
func (l *Layers) Declare(ctx context.Context, q orchestrator.Request) (*scheduler.Record, error) {
	begin := time.Now()
	record, err := l.trials.Declare(ctx, q)
	l.count(operationOf(q), time.Since(begin).Seconds())
	return record, err
}

// operationOf names a change: Resync replaces a layer, Delete has no values.
func operationOf(q orchestrator.Request) string {
	switch {
	case q.Replace:
		return "Resync"
	case slices.ContainsFunc(q.Values, func(d orchestrator.Declared) bool { return d.Message != nil || d.JSON != nil }):
		return "Update"
	}
	return "Delete"
}

// count adds one change of a client to the figures of /stats/configurator. The duration is
// in seconds.
func (l *Layers) count(operation string, took float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stats == nil {
		l.stats = map[string]counts.Method{}
	}
	l.stats[operation] = sum(l.stats[operation], counts.Method{Name: operation, Count: 1, Total: took, Min: took, Max: took})
}

// sum adds the counts of two methods; the name is that of b.
func sum(a, b counts.Method) counts.Method {
	if a.Count > 0 {
		b.Count, b.Total, b.Min, b.Max = a.Count+b.Count, a.Total+b.Total, min(a.Min, b.Min), max(a.Max, b.Max)
	}
	b.Avg = b.Total / float64(b.Count)
	return b
}

// configuratorStats returns the counts since the start.
func (l *Layers) configuratorStats() counts.ConfiguratorStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := counts.ConfiguratorStats{AllOperations: counts.Method{Name: "all"}, Operations: []counts.Method{}}
	for _, name := range slices.Sorted(maps.Keys(l.stats)) {
		m := l.stats[name]
		out.Operations = append(out.Operations, m)
		m.Name = out.AllOperations.Name
		out.AllOperations = sum(out.AllOperations, m)
	}
	return out
}

// healthKeys is the prefix of the agent's health, below its root. Its keys are agent and
// plugin/NAME.
const healthKeys = "check/status/v1/"

// healthPublishers returns a task for each store that receives the agent's health.
func (s stores) healthPublishers(root string, names []string, health *health.Health, log *slog.Logger) (out []Task) {
	for _, name := range names {
		at := slices.IndexFunc(s, func(one store) bool { return one.name == name })
		if at < 0 {
			log.Warn("cannot publish the agent's health: the store is not configured", "source", name)
			continue
		}
		into := s[at].publisher
		if into == nil {
			log.Warn("cannot publish the agent's health: the store does not support it", "source", name)
			continue
		}
		out = append(out, Task{"health into " + name, publish.Table{
			Options: publish.Options{Name: name, Store: into, Root: root, Listed: s[at].listed.Join().C(), Log: log}, Below: healthKeys,
			Read: func(context.Context) (map[string][]byte, error) { return healthTexts(health.Status()) },
		}.Run})
	}
	return out
}

// healthTexts returns the texts of the agent's health by key. That of the agent changes
// each time, so that readers see that it runs; those of its parts only with their state.
func healthTexts(st wire.AgentStatus) (map[string][]byte, error) {
	out := map[string][]byte{}
	text, err := json.Marshal(st.Stored())
	if err != nil {
		return nil, err
	}
	out["agent"] = text
	for name, part := range st.PluginStatus {
		if out["plugin/"+name], err = json.Marshal(part.Stored()); err != nil {
			return nil, err
		}
	}
	return out, nil
}
