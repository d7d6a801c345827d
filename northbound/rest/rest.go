// Package rest is the HTTP API of the agent: values, transactions, plans, explanations,
// configuration, dumps, health, metrics, logs and VPP's command line.
//
//	server := rest.Server{Config: config, Options: rest.Options{Scheduler: sched, Log: log}}
//	err := server.Run(ctx)
//
// GET / lists the paths, docs/rest.md describes them, and package wire defines the
// answers. GET /openapi.json describes them for programs; like the handlers, it comes from
// the table of endpoints. [Handler] serves all of it without a network.
//
// The server listens on 127.0.0.1:9191. There and on the agent's socket it has no users
// by default. On other addresses it is refused without users, unless the configuration
// says so. Package auth knows the users; groups.go lists their permissions.
//
//	request                         | data                  | waits for transactions
//	dumps NB and cached, graphs     | snapshot of scheduler | no
//	health, configuration           | snapshot of scheduler | no
//	dump SB, /dump                  | southbound, read now  | no
//	plan, retry, resync             | scheduler             | yes, takes its turn
//	PUT and DELETE of configuration | orchestrator          | yes, takes its turn
//
// Answers are written item by item. The numbers of connections and expensive
// requests, the duration of a request and the size of a body are bounded; see
// Config.
//
// The server owns only its connections. Tests run a real Scheduler with descriptors
// in memory under synctest, and compare the answers with golden files.
package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/keyplane/keyplane/models/structured/document"
	"github.com/keyplane/keyplane/northbound/rest/internal/auth"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// Options configure a Handler.
type Options struct {
	Scheduler *scheduler.Scheduler
	// Sources reports the sources of declared values. Defaults to none.
	Sources Sources
	// Label is the label of the agent. Keys may have the prefix /vnf-agent/LABEL/.
	// Defaults to none.
	Label   string
	Version wire.Version
	// VPP returns the state of VPP. Defaults to none: the path answers 404.
	VPP func(ctx context.Context) wire.VPP
	// Command runs a line of VPP's command line. Defaults to none: the path answers 404.
	Command Commander
	// Declarer takes the values that clients declare. Defaults to none: the methods answer
	// 404.
	Declarer Declarer
	// Proxy serves VPP's whole binary API to GoVPP's proxy client. Defaults to none: the
	// path answers 503.
	Proxy http.Handler
	// Health tells whether the agent is ready. Defaults to none: the paths answer 404.
	Health *Health
	// Logs is the table of log levels. Defaults to none: the paths answer 404.
	Logs Logs
	// Telemetry reads counters. What it lacks answers 404.
	Telemetry Telemetry
	// Secrets includes secrets in dumps, such as the keys of WireGuard and IPsec.
	// Set it only for listeners that are restricted to the agent's own user.
	// Otherwise dumps contain "(secret)", except for users with the permission.
	Secrets bool
	// MaxBody is the maximum size of a request's body in bytes. Defaults to 8 MiB.
	MaxBody int64
	// Gate is shared with others that read large texts. Defaults to one for the bodies of requests.
	Gate *document.Gate
	Log  *slog.Logger // Defaults to discarding

	// guard knows the users. nil: everybody may do everything except see secrets.
	guard *auth.Guard
	// answerTime is how long an expensive answer may take. Defaults to 2 min; negative: no limit.
	answerTime time.Duration
}

// defaultMaxBody is the default of Options.MaxBody, in bytes.
const defaultMaxBody = 8 << 20

// handler serves the endpoints. Its fields do not change; the scheduler is safe for
// concurrent use.
type handler struct {
	Options
	sched *scheduler.Scheduler
	turns chan struct{} // holds a token for each expensive request that is served
}

// Handler returns a handler for all paths. It refuses requests of browsers on behalf
// of other sites.
func Handler(o Options) http.Handler {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	o.Gate = cmp.Or(o.Gate, document.NewGate())
	if o.answerTime = cmp.Or(o.answerTime, defaultWriteTimeout); o.answerTime < 0 {
		o.answerTime = noTimeout
	}
	h := &handler{o, o.Scheduler, make(chan struct{}, maxExpensive)}
	mux := http.NewServeMux()
	mux.HandleFunc("/", h.unknownPath)
	methods := map[string][]string{} // by pattern
	for _, e := range h.endpoints() {
		e = h.protected(h.limited(e))
		mux.HandleFunc(e.method+" "+e.pattern(), e.answer)
		methods[e.pattern()] = append(methods[e.pattern()], e.method)
	}
	for pattern, allowed := range methods {
		mux.HandleFunc(pattern, methodNotAllowed(pattern, allowed))
	}
	// Browsers send the origin of a page. Requests that could change something are
	// refused if it is another site's.
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, statusError{http.StatusForbidden, errors.New("requests from pages of other sites are not allowed")})
	}))
	return h.labelled(guard.Handler(mux))
}

// labelled names the agent's label in each answer, and refuses requests for another agent: a
// client that knows an address of this host may not know which agent listens there.
func (h *handler) labelled(next http.Handler) http.Handler {
	if h.Label == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(wire.LabelHeader, h.Label)
		if expected := r.Header.Get(wire.LabelHeader); expected != "" && expected != h.Label {
			fail(w, statusError{http.StatusMisdirectedRequest, fmt.Errorf("this agent has the label %s, and the request is for %s", h.Label, expected)})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// endpoints returns all paths in the order of the index.
func (h *handler) endpoints() []endpoint {
	return slices.Concat(h.aboutAgent(), h.schedulerPaths(), h.configurationPaths(), h.dumps(), h.counters(), h.logins())
}

// aboutAgent returns the paths about the agent itself, its sources and its VPP.
func (h *handler) aboutAgent() []endpoint {
	return []endpoint{
		get("/", groupAny, "", "list of the paths", h.index).writes("text/html"),
		get("/openapi.json", groupAny, "", "this API for programs (OpenAPI 3.0)", h.openAPI).answers(map[string]any{}),
		get("/liveness", groupOpen, "", "whether the agent runs", h.liveness).answers(wire.AgentStatus{}),
		get("/readiness", groupOpen, "", "whether the network is as declared as far as possible; otherwise status 500 and the reasons", h.readiness).answers(wire.AgentStatus{}),
		get("/info/version", groupInfo, "", "version of the agent", h.version).answers(wire.Version{}),
		get("/sources", groupInfo, "key= or key-prefix=", "state of the sources; for keys: which sources hold them, and which one takes effect", h.sources).answers([]wire.Source{}),
		get("/vpp/info", groupInfo, "", "connection, version, features and plugins of VPP", h.vpp).answers(wire.VPP{}),
		get("/vpp/command", groupVPP, "", "output of a line of VPP's command line", h.vppCommand).by(http.MethodPost).takes(jsonMedia).answers(""),
		get(proxyPath, groupVPP, "", "VPP's binary API for GoVPP's proxy client, if govpp.conf enables it", h.proxy).by(http.MethodConnect).writes("application/octet-stream"),
		get("/log/list", groupLog, "", "log levels", h.logList).answers([]wire.LogLevel{}),
		get("/log/{logger}/{level}", groupLog, "", "set a log level", h.setLogLevel).by(http.MethodPut).answers(wire.LogLevel{}),
	}
}

// schedulerPaths returns the paths of values, their states and their history.
func (h *handler) schedulerPaths() []endpoint {
	return []endpoint{
		get("/drift", groupDump, "", "reads back all values, and lists those that differ from the configured ones; nothing is changed", h.drift).answers(wire.Drift{}).costly(),
		get("/scheduler/dump", groupDump, "descriptor= or key-prefix=, view=SB|NB|cached, secrets=1", "values of a descriptor; without arguments: the list of descriptors", h.dump).answers([]wire.DumpEntry{}).costly(),
		get("/scheduler/status", groupDump, "key= or descriptor= or key-prefix=", "state of values", h.status).answers([]wire.BaseValueStatus{}),
		get("/scheduler/txn-history", groupDump, "seq-num= or since=, until= (UNIX ns); format=json|text", "transactions: planned operations and their results", h.history).answers([]wire.Record{}).costly(),
		get("/scheduler/key-timeline", groupDump, "key=, time= (UNIX ns)", "history of one key", h.keyTimeline).answers([]wire.Node{}).costly(),
		get("/scheduler/graph-snapshot", groupDump, "time= (UNIX ns)", "all values and their relations", h.snapshot).answers([]wire.Node{}).costly(),
		get("/scheduler/flag-stats", groupDump, "flag=, prefix= (many)", "how often each value of a flag occurs", h.flagStats).answers(wire.FlagStats{}).costly(),
		get("/scheduler/graph", groupDump, "txn=, format=svg|png|dot|raw", "picture of the values and their relations", h.graph).writes("image/svg+xml").costly(),
		get("/scheduler/stats", groupStats, "", "number and duration of operations", h.stats).answers(wire.Stats{}),
		get("/scheduler/explain", groupDump, "key=, format=json|text", "why a value is not applied", h.explain).answers(wire.Explanation{}),
		get("/scheduler/plan", groupValidate, "format=json|text, replace=1", "operations that these values would cause; nothing is changed", h.plan).by(http.MethodPost).takes(yamlMedia).answers(wire.Plan{}).costly(),
		get("/scheduler/validate", groupValidate, "", "errors of these values and conflicts among them", h.validate).by(http.MethodPost).takes(yamlMedia).answers([]wire.Invalid{}).costly(),
		get("/scheduler/retry", groupWrite, "key=", "retry a failed value and the values derived from it", h.retry).by(http.MethodPost).answers(wire.Record{}),
		get("/scheduler/downstream-resync", groupWrite, "retry=1, verbose=1", "read back the actual state and repair it", h.resync).by(http.MethodPost).answers(wire.Record{}),
	}
}

// configurationPaths returns the paths of the declared values as one document.
func (h *handler) configurationPaths() []endpoint {
	return []endpoint{
		get("/configuration", groupRead, "secrets=1", "effective declared values as one YAML document", h.configuration).writes(yamlMedia).costly(),
		get("/configuration", groupWrite, "replace=1, revert=1, datasrc=", "declare the values of a document; replace: and no others of this data source", h.putConfiguration).by(http.MethodPut).takes(yamlMedia).answers(wire.Nothing{}).costly(),
		get("/configuration", groupWrite, "key= (many), all=1, revert=1, datasrc=", "remove the values of a document, of keys, or all of this data source", h.deleteConfiguration).by(http.MethodDelete).takes(yamlMedia).answers(wire.Nothing{}).costly(),
		get("/configuration/validate", groupValidate, "", "{} if a document is valid; otherwise status 400 and its errors", h.validateConfiguration).by(http.MethodPost).takes(yamlMedia).answers(wire.Nothing{}).costly(),
		get("/info/configuration/jsonschema", groupInfo, "fieldnames=both|onlyproto|onlyjson", "JSON schema of a configuration document", h.jsonSchema).answers(map[string]any{}),
	}
}

// counters returns the paths of statistics and metrics.
func (h *handler) counters() []endpoint {
	t := h.Telemetry
	return []endpoint{
		get("/stats/linux/interfaces", groupStats, "", "the kernel's counters of the agent's interfaces", read(t.LinuxInterfaces)).answers([]wire.LinuxInterfaceStats{}).costly(),
		get("/stats/configurator", groupStats, "", "number and duration of changes by clients", readNow(t.Configurator)).answers(wire.ConfiguratorStats{}),
		get("/vpp/telemetry", groupTelem, "", "VPP's memory, runtime and node counters", h.allTelemetry).answers(map[string]any{}).costly(),
		get("/vpp/telemetry/memory", groupTelem, "", "VPP's memory", read(t.Memory)).answers(map[string]any{}),
		get("/vpp/telemetry/runtime", groupTelem, "", "VPP's graph nodes", read(t.Runtime)).answers(map[string]any{}).costly(),
		get("/vpp/telemetry/nodecount", groupTelem, "", "VPP's node counters", read(t.NodeCounters)).answers(map[string]any{}).costly(),
		get("/govppmux/stats", groupStats, "", "requests to VPP", readNow(t.Requests)).answers(wire.MuxStats{}),
		get("/health", groupStats, "", "health as Prometheus metrics", mounted(t.Health)).writes("text/plain"),
		get("/metrics", groupStats, "", "Prometheus metrics", mounted(t.Metrics)).writes("text/plain"),
		get("/metrics/{model}", groupStats, "", "metrics of a model, such as govppmux.stats", h.metricsModel).answers(map[string]any{}),
	}
}

// proxyPath is where GoVPP's proxy client connects.
const proxyPath = "/_goRPC_"
