package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/descriptors/vpp/telemetry"
	"github.com/keyplane/keyplane/internal/logs"
	"github.com/keyplane/keyplane/northbound/metrics"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/northbound/rest/counters"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/northbound/rest/wire/counts"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/govppmux"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
)

// openLogs reads agent.conf and logs.conf, and returns the loggers of all components.
func openLogs(s *settings, out io.Writer) (*logs.Table, error) {
	early := slog.New(slog.NewTextHandler(logs.NewSink(out), &slog.HandlerOptions{Level: s.LogLevel}))
	if err := s.readAgent(early); err != nil {
		return nil, err
	}
	var conf logs.Config
	if _, err := s.files(early).load("logs-config", s.LogsConfig, &conf); err != nil {
		return nil, fmt.Errorf("%w: %w", errConfig, err)
	}
	if len(conf.Hooks) > 0 {
		early.Warn("hooks of logs.conf have no effect; the service manager passes the log on")
	}
	return logs.New(conf.Options(out, s.LogLevel)), nil
}

// warnUnused logs the names in logs.conf that no component has.
func warnUnused(table *logs.Table, log *slog.Logger) {
	names := table.Unused()
	if len(names) == 0 {
		return
	}
	var known []string
	for _, l := range table.List() {
		known = append(known, l.Logger)
	}
	log.Warn("logs.conf names loggers that do not exist", "loggers", names, "expected", known)
}

// levels is the table of log levels for rest.
type levels struct{ *logs.Table }

// Levels implements rest.Logs.
func (l levels) Levels() map[string]string {
	out := map[string]string{}
	for _, one := range l.List() {
		out[one.Logger] = one.Level
	}
	return out
}

// SetLevel implements rest.Logs.
func (l levels) SetLevel(name, level string) error {
	_, err := l.Set(name, level)
	if errors.Is(err, logs.ErrUnknown) {
		return fmt.Errorf("%q: %w", name, rest.ErrNoLogger)
	}
	return err
}

// An observation has everything that shows figures of the agent.
type observation struct {
	metrics *metrics.Metrics
	// The tasks that keep the figures up to date, and the periodic resync.
	tasks    []Task
	poller   *telemetry.Poller   // nil: no counters of VPP
	requests func() vpp.Requests // nil: the agent is without VPP
}

// measure creates the metrics before the first addition, which may register more.
func (a *assembly) measure() {
	is := about(a.options.Name)
	a.figures = metrics.New(metrics.Options{
		Build:     metrics.Build{Version: is.Version, Revision: is.GitCommit, Branch: is.GitBranch, GoVersion: is.GoVersion},
		Scheduler: a.Scheduler, Sources: merging{a}, Log: a.loggers.Logger("telemetry"),
		Health: func() metrics.Health { return healthFigures(a.Parts.Label, a.health) },
	})
	a.Metrics = a.figures.Registry()
}

// merging are the sources of the orchestrator, which is created after the metrics. Nobody asks
// for metrics before the agent runs.
type merging struct{ a *assembly }

// Health implements metrics.Options.Sources.
func (m merging) Health() []orchestrator.Health { return m.a.Orchestrator.Health() }

// observe prepares the figures of the agent. It is called before any part runs.
func (a *assembly) observe() (observation, error) {
	log := a.loggers.Logger("telemetry")
	o := observation{metrics: a.figures, tasks: []Task{a.conf.scheduler.resync(a.Scheduler, a.Log), a.conf.scheduler.drift(a.Scheduler, log)}}
	if a.VPP == nil {
		return o, nil
	}
	o.requests = a.VPP.Requests
	err := o.metrics.Register(a.VPP.Collector())
	if a.conf.telemetry.Disabled {
		return o, err
	}
	o.poller = a.VPP.Telemetry(a.conf.telemetry)
	if !a.conf.telemetry.NoPrometheus {
		err = errors.Join(err, o.metrics.Register(o.poller.Collector(a.Parts.Label)))
		o.tasks = append(o.tasks, Task{"telemetry", o.poller.Run})
	}
	return o, err
}

// addTo adds the figures to the HTTP API.
func (o observation) addTo(t counters.Readers) counters.Readers {
	t.Metrics, t.Health = o.metrics.Handler(), o.metrics.HealthHandler()
	if o.requests != nil {
		t.Requests = o.muxStats
	}
	if o.poller == nil {
		return t
	}
	t.Models = map[string]func() any{"govppmux.stats": func() any { return muxModel(o.requests()) }}
	t.Memory = func(ctx context.Context) (any, error) {
		s, err := o.poller.Read(ctx, telemetry.Memory)
		return map[string]any{"threads": s.Memory}, err
	}
	t.Runtime = func(ctx context.Context) (any, error) {
		s, err := o.poller.Read(ctx, telemetry.Runtime)
		return map[string]any{"threads": s.Runtime}, err
	}
	t.NodeCounters = func(ctx context.Context) (any, error) {
		s, err := o.poller.Read(ctx, telemetry.Nodes)
		return map[string]any{"counters": s.Nodes}, err
	}
	return t
}

// muxStats returns the figures of the connection to VPP for /govppmux/stats.
func (o observation) muxStats() counts.MuxStats {
	r := o.requests()
	out := counts.MuxStats{
		ChannelsCreated: r.Connections, ChannelsOpen: r.Open, RequestsSent: r.Sent, RequestsDone: r.Done,
		RequestsFail: r.Failed, RequestReplies: r.Replies,
		AllMessages: counts.Method{Name: "all"}, Messages: []counts.Method{}, Errors: []counts.MessageErrors{},
	}
	for _, name := range slices.Sorted(maps.Keys(r.Messages)) {
		m := r.Messages[name]
		if failed := m.Requests - m.Done; failed > 0 {
			out.Errors = append(out.Errors, counts.MessageErrors{Name: name, Count: failed})
		}
		if m.Done == 0 {
			continue
		}
		one := counts.Method{Name: name, Count: m.Done, Total: m.Took.Seconds(), Avg: m.Took.Seconds() / float64(m.Done), Min: m.Shortest.Seconds(), Max: m.Longest.Seconds()}
		out.Messages = append(out.Messages, one)
		one.Name = out.AllMessages.Name
		out.AllMessages = sum(out.AllMessages, one)
	}
	return out
}

// muxModel returns the figures of the connection to VPP as the metrics model govppmux.stats.
func muxModel(r vpp.Requests) proto.Message {
	return &govppmux.Metrics{
		ChannelsCreated: r.Connections, ChannelsOpen: r.Open,
		RequestsSent: r.Sent, RequestsDone: r.Done, RequestsFail: r.Failed, RequestReplies: r.Replies,
	}
}

// healthFigures converts the agent's health.
func healthFigures(label string, health *health.Health) metrics.Health {
	st := health.Status()
	out := metrics.Health{Service: label, Version: st.BuildVersion, BuildDate: st.BuildDate, State: metrics.OperationalState(st.State)}
	for name, part := range st.PluginStatus {
		out.Parts = append(out.Parts, metrics.Part{Name: name, State: metrics.OperationalState(part.State)})
	}
	return out
}

// every calls do in intervals until ctx ends; a period of 0 means never. The first call comes
// after a whole period: the start reads everything back anyway.
func every(ctx context.Context, period time.Duration, do func(context.Context)) error {
	if period == 0 {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			do(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// resync returns the task that reads back and repairs the network in the intervals of
// resync-period.
func (c schedulerConfig) resync(sched *scheduler.Scheduler, log *slog.Logger) Task {
	return Task{"resync", func(ctx context.Context) error {
		return every(ctx, c.ResyncPeriod, func(ctx context.Context) {
			var failed *scheduler.TxnError // the record has these failures; their values are retried
			_, err := sched.Commit(ctx, scheduler.Txn{Description: "periodic resync", Refresh: true})
			if err != nil && !errors.As(err, &failed) && ctx.Err() == nil {
				log.Warn("periodic resync failed", "err", err)
			}
		})
	}}
}

// drift returns the task that counts the drift in the intervals of drift-period. The number is
// logged when it changes.
func (c schedulerConfig) drift(sched *scheduler.Scheduler, log *slog.Logger) Task {
	return Task{"drift", func(ctx context.Context) error {
		last := 0
		return every(ctx, c.DriftPeriod, func(ctx context.Context) {
			d, err := drift.Check(ctx, sched)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				log.Warn("cannot check the drift", "err", err)
				return
			case len(d.Values) == last:
			case len(d.Values) == 0:
				log.Info("no value differs from the configured ones any more")
			default:
				log.Warn("values differ from the configured ones; a resync repairs them", "values", len(d.Values), "one", d.Values[0].Key, "kind", d.Values[0].Kind)
			}
			last = len(d.Values)
		})
	}}
}
