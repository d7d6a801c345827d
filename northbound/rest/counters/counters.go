// Package counters has the paths of statistics and metrics. The agent gives the functions that read
// them: from VPP, from the kernel, and from its own parts.
package counters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire/counts"
)

// Readers read counters. Functions that are nil make their paths answer 404. Results
// are encoded with encoding/json.
type Readers struct {
	// Memory, Runtime and NodeCounters read VPP.
	Memory, Runtime, NodeCounters func(ctx context.Context) (any, error)
	// Command runs a line of VPP's command line.
	Command func(ctx context.Context, line string) (string, error)
	// LinuxInterfaces reads the kernel's counters of the agent's interfaces.
	LinuxInterfaces func(ctx context.Context) ([]counts.LinuxInterfaceStats, error)
	// Requests counts requests to VPP.
	Requests func() counts.MuxStats
	// Configurator counts the changes of the configuration by clients.
	Configurator func() counts.ConfiguratorStats
	// Metrics and Health are the metrics in Prometheus' format.
	Metrics, Health http.Handler
	// Models are the models of class metrics by name.
	Models map[string]func() any
}

// errNone is the answer of a path whose reader is nil.
var errNone = errors.New("this agent does not have these counters")

// Endpoints returns the paths in the order of the index.
func (t Readers) Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		endpoint.Get("/stats/linux/interfaces", endpoint.Stats, "", "the kernel's counters of the agent's interfaces", read(t.LinuxInterfaces)).Answers([]counts.LinuxInterfaceStats{}).Costly(),
		endpoint.Get("/stats/configurator", endpoint.Stats, "", "number and duration of changes by clients", readNow(t.Configurator)).Answers(counts.ConfiguratorStats{}),
		endpoint.Get("/vpp/telemetry", endpoint.Telemetry, "", "what VPP prints about its nodes, buffers and memory", t.allOfVPP).Answers([]counts.CommandOutput{}).Costly(),
		endpoint.Get("/vpp/telemetry/memory", endpoint.Telemetry, "", "VPP's memory", read(t.Memory)).Answers(map[string]any{}),
		endpoint.Get("/vpp/telemetry/runtime", endpoint.Telemetry, "", "VPP's graph nodes", read(t.Runtime)).Answers(map[string]any{}).Costly(),
		endpoint.Get("/vpp/telemetry/nodecount", endpoint.Telemetry, "", "VPP's node counters", read(t.NodeCounters)).Answers(map[string]any{}).Costly(),
		endpoint.Get("/govppmux/stats", endpoint.Stats, "", "requests to VPP", readNow(t.Requests)).Answers(counts.MuxStats{}),
		endpoint.Get("/health", endpoint.Stats, "", "health as Prometheus metrics", mounted(t.Health)).Writes("text/plain"),
		endpoint.Get("/metrics", endpoint.Stats, "", "Prometheus metrics", mounted(t.Metrics)).Writes("text/plain"),
		endpoint.Get("/metrics/{model}", endpoint.Stats, "", "metrics of a model, such as govppmux.stats", t.metricsModel).Answers(map[string]any{}),
	}
}

// read returns an endpoint's function that answers what one of the readers returns. The
// reader gets the context of the request, so a client that goes ends it.
func read[T any](f func(context.Context) (T, error)) func(http.ResponseWriter, *http.Request, endpoint.Query) error {
	return func(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
		if f == nil {
			return reply.NotFound(errNone)
		}
		out, err := f(r.Context())
		if err != nil {
			return err
		}
		return reply.JSON(w, out)
	}
}

// readNow is read for a reader that cannot fail.
func readNow[T any](f func() T) func(http.ResponseWriter, *http.Request, endpoint.Query) error {
	if f == nil {
		return read[T](nil)
	}
	return read(func(context.Context) (T, error) { return f(), nil })
}

// pages are the lines of VPP's command line that /vpp/telemetry asks. Those that print the
// routes are not among them: VPP forwards nothing while it prints a large table.
func pages() []string {
	return []string{"show node counters", "show runtime", "show buffers", "show memory main-heap"}
}

// allOfVPP answers what VPP prints about its counters, for people. The other paths have the numbers.
func (t Readers) allOfVPP(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	if t.Command == nil {
		return reply.NotFound(errNone)
	}
	out := []counts.CommandOutput{}
	for _, line := range pages() {
		text, err := t.Command(r.Context(), line)
		if err != nil {
			text = err.Error()
		}
		out = append(out, counts.CommandOutput{Command: line, Output: text})
	}
	return reply.JSON(w, out)
}

// mounted returns an endpoint's function that passes requests to another handler. It is
// for answers of other libraries, such as Prometheus's, which write errors themselves.
func mounted(other http.Handler) func(http.ResponseWriter, *http.Request, endpoint.Query) error {
	return func(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
		if other == nil {
			return reply.NotFound(errNone)
		}
		other.ServeHTTP(w, r)
		return nil
	}
}

// metricsModel answers the metrics of a model.
func (t Readers) metricsModel(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	name := r.PathValue("model")
	f := t.Models[name]
	if f == nil {
		known := strings.Join(slices.Sorted(maps.Keys(t.Models)), ", ")
		if known == "" {
			return reply.NotFound(errNone)
		}
		return reply.NotFound(fmt.Errorf("no metrics %q: expected one of %s", name, known))
	}
	return reply.JSON(w, f())
}
