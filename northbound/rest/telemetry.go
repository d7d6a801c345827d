package rest

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
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Telemetry reads counters. Functions that are nil make their paths answer 404. Results
// are encoded with encoding/json.
type Telemetry struct {
	// Memory, Runtime and NodeCounters read VPP.
	Memory, Runtime, NodeCounters func(ctx context.Context) (any, error)
	// LinuxInterfaces reads the kernel's counters of the agent's interfaces.
	LinuxInterfaces func(ctx context.Context) ([]wire.LinuxInterfaceStats, error)
	// Requests counts requests to VPP.
	Requests func() wire.MuxStats
	// Configurator counts the changes of the configuration by clients.
	Configurator func() wire.ConfiguratorStats
	// Metrics and Health are the metrics in Prometheus' format.
	Metrics, Health http.Handler
	// Models are the models of class metrics by name.
	Models map[string]func() any
}

// errNoTelemetry is the answer of a path whose reader is nil.
var errNoTelemetry = errors.New("this agent does not have these counters")

// read returns an endpoint's function that answers what one of the readers returns. The
// reader gets the context of the request, so a client that goes ends it.
func read[T any](f func(context.Context) (T, error)) func(http.ResponseWriter, *http.Request, endpoint.Query) error {
	return func(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
		if f == nil {
			return reply.NotFound(errNoTelemetry)
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

// allTelemetry answers all counters of VPP in one object. Counters that cannot be read
// are texts with the reason.
func (h *handler) allTelemetry(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	out := map[string]any{}
	for name, f := range map[string]func(context.Context) (any, error){
		"memory": h.Telemetry.Memory, "runtime": h.Telemetry.Runtime, "nodecount": h.Telemetry.NodeCounters,
	} {
		if f == nil {
			continue
		}
		v, err := f(r.Context())
		if out[name] = v; err != nil {
			out[name] = err.Error()
		}
	}
	if len(out) == 0 {
		return reply.NotFound(errNoTelemetry)
	}
	return reply.JSON(w, out)
}

// mounted returns an endpoint's function that passes requests to another handler. It is
// for answers of other libraries, such as Prometheus's, which write errors themselves.
func mounted(other http.Handler) func(http.ResponseWriter, *http.Request, endpoint.Query) error {
	return func(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
		if other == nil {
			return reply.NotFound(errNoTelemetry)
		}
		other.ServeHTTP(w, r)
		return nil
	}
}

// metricsModel answers the metrics of a model.
func (h *handler) metricsModel(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	name := r.PathValue("model")
	f := h.Telemetry.Models[name]
	if f == nil {
		known := strings.Join(slices.Sorted(maps.Keys(h.Telemetry.Models)), ", ")
		if known == "" {
			return reply.NotFound(errNoTelemetry)
		}
		return reply.NotFound(fmt.Errorf("no metrics %q: expected one of %s", name, known))
	}
	return reply.JSON(w, f())
}
