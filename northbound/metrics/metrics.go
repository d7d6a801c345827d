// Package metrics shows the figures of the agent to Prometheus.
//
//	m := metrics.New(metrics.Options{Scheduler: sched, Sources: orch, Label: "vpp1"})
//	m.Register(telemetry.Collector()) // figures of other parts
//	mux.Handle("GET /metrics", m.Handler())
//	mux.Handle("GET /metrics/{model}", m.ModelHandler())
//	mux.Handle("GET /health", m.HealthHandler())
//
// The package keeps no figures of its own. Each request reads the counts that other parts
// keep anyway; none of them walks over the values. So the cost of a request depends on the
// number of descriptors, sources and VPP messages, not on the number of values.
//
// Names that begin with ligato_ are those of the older agent, so that existing dashboards
// and alerts work. Names that begin with keyplane_ are new. docs/metrics.md lists all of
// them, and a test compares that list with the registry.
package metrics

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// Options configure Metrics. The zero value works and shows the process only.
type Options struct {
	Scheduler *scheduler.Scheduler // Defaults to none.
	// Sources reports the sources of declared values. Defaults to none.
	Sources interface{ Health() []orchestrator.Health }
	// Health returns the state of the agent, for /health. Defaults to none.
	Health func() Health
	// Models returns messages for /metrics/{model} by name, such as "govppmux.stats". Each
	// function is called for each request. Defaults to none.
	Models map[string]func() proto.Message
	// Build describes the program, for ligato_build_info. Defaults to an unknown one.
	Build Build
	Log   *slog.Logger // of metrics that contradict each other. Defaults to slog.Default.
}

// A Build describes a build of the program. Empty texts are unknown.
type Build struct{ Version, Revision, Branch, GoVersion string }

// info returns the metric that tells the build. Its value is always 1.
func (b Build) info() prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ligato_build_info", Help: "The build of the agent, in labels; always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "branch": b.Branch, "goversion": b.GoVersion},
	})
	g.Set(1)
	return g
}

// Metrics has the registries of /metrics and /health. Its methods may be called from any
// goroutine.
type Metrics struct {
	o      Options
	all    *prometheus.Registry
	health *prometheus.Registry
}

// New returns Metrics with the figures of the process, the scheduler and the sources.
func New(o Options) *Metrics {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	m := &Metrics{o: o, all: prometheus.NewRegistry(), health: prometheus.NewRegistry()}
	m.all.MustRegister(o.Build.info(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{Namespace: "ligato"})) // the same under the names of the older agent
	if o.Scheduler != nil {
		m.all.MustRegister(newSchedulerCollector(o.Scheduler))
	}
	if o.Sources != nil {
		m.all.MustRegister(sourceCollector{o.Sources})
	}
	if o.Health != nil {
		m.health.MustRegister(healthCollector{o.Health})
	}
	return m
}

// Register adds the figures of another part to /metrics. It fails if a name is already in
// use with other labels or another help text.
func (m *Metrics) Register(c prometheus.Collector) error {
	if err := m.all.Register(c); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Registry returns the registry of /metrics, for libraries that register by themselves.
func (m *Metrics) Registry() *prometheus.Registry { return m.all }

// Handler serves /metrics: all figures in the format that the client asks for.
func (m *Metrics) Handler() http.Handler { return m.serve(m.all) }

// HealthHandler serves /health: the state of the agent and its parts.
func (m *Metrics) HealthHandler() http.Handler { return m.serve(m.health) }

// mostAtOnce bounds the memory for answers: with many interfaces of VPP, one takes 70 MB. Others
// are told to try again (503).
const mostAtOnce = 2

// serve shows what can be collected, even if one collector fails: a wrong figure of one part
// must not hide the others.
func (m *Metrics) serve(r *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: mostAtOnce,
		ErrorLog:            errorLog{m.o.Log},
	})
}

// errorLog writes the errors of promhttp to a logger.
type errorLog struct{ log *slog.Logger }

// Println implements the logger of promhttp: metrics that cannot be collected are left
// out.
func (l errorLog) Println(v ...any) { l.log.Error("metrics are incomplete", "err", fmt.Sprint(v...)) }

// ErrNoModel is the error of Model for an unknown name.
var ErrNoModel = errors.New("no metrics model of this name")

// Model returns the message of a metrics model as JSON. The only model of the older agent is
// "govppmux.stats".
func (m *Metrics) Model(name string) ([]byte, error) {
	read := m.o.Models[name]
	if read == nil {
		return nil, fmt.Errorf("%q: %w; expected one of %v", name, ErrNoModel, m.ModelNames())
	}
	text, err := protojson.MarshalOptions{EmitUnpopulated: true, Multiline: true, Indent: "  "}.Marshal(read())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// ModelNames returns the names that Model knows, sorted.
func (m *Metrics) ModelNames() []string {
	names := make([]string, 0, len(m.o.Models))
	for name := range m.o.Models {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ModelHandler serves /metrics/{model}. The pattern of its route must name the model "model".
func (m *Metrics) ModelHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := m.Model(r.PathValue("model"))
		switch {
		case errors.Is(err, ErrNoModel):
			http.Error(w, err.Error(), http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(append(text, '\n'))
		}
	})
}
