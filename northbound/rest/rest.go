// Package rest is the HTTP API of the agent: values, transactions, plans, explanations,
// configuration, dumps, health, metrics, logs and VPP's command line.
//
//	server := rest.Server{Config: config, Options: rest.Options{Scheduler: sched, Log: log}}
//	err := server.Run(ctx)
//
// GET / lists the paths, docs/rest.md describes them, and package wire defines the
// answers. GET /openapi.json describes them for programs; like the handlers, it comes from
// the table of endpoints in this file. [Handler] serves all of it without a network.
//
//	internal/endpoint     what the table says of a path: permission, arguments, index, OpenAPI
//	internal/body         values in the body of a request
//	internal/reply        answers and errors
//	internal/details      the forms of the dumps below /dump
//	internal/records      transactions and operations
//	internal/states       present states of values
//	past                  transactions of earlier runs, without values
//	internal/timeline     past values, from the history of transactions
//	internal/nodes        values and their relations, now or in the past
//	internal/statistics   numbers and durations of operations
//	counters              counters of VPP, the kernel and the agent
//	internal/connections  connections, and what is unknown
//	internal/drawing      pictures of values and their relations
//	internal/auth         users, passwords and tokens
//	internal/events       the stream of changes
//	internal/ui           the agent's page
//	internal/waiting      requests that are answered when values have a state
//	internal/trials       changes that are taken back unless they are confirmed
//	internal/export       declared values as a document
//	internal/pages        values and transactions in parts, for the agent's page
//
// The server listens on 127.0.0.1:9191. By default, everybody may read there without a user, and nobody may change
// anything. A configuration with an endpoint and without users opens that to everybody, with a warning. Whoever may
// open the agent's socket may do everything. Package auth knows the users; package endpoint lists their permissions.
//
//	request                         | data                  | waits for transactions
//	dumps NB and cached, graphs     | snapshot of scheduler | no
//	health, configuration           | snapshot of scheduler | no
//	events, waits                   | scheduler and sources | no
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

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/northbound/rest/counters"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/northbound/rest/internal/auth"
	"github.com/keyplane/keyplane/northbound/rest/internal/connections"
	"github.com/keyplane/keyplane/northbound/rest/internal/deadline"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/events"
	"github.com/keyplane/keyplane/northbound/rest/internal/pages"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/internal/trials"
	"github.com/keyplane/keyplane/northbound/rest/internal/ui"
	"github.com/keyplane/keyplane/northbound/rest/internal/waiting"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/counts"
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
	// Trials keeps changes that are taken back unless they are confirmed. Defaults to none: they
	// answer 404.
	Trials Trials
	// Previewer plans the content of a source. Defaults to none: such plans answer 404.
	Previewer Previewer
	// Contents tells what each source declares. Defaults to none: only the values that take
	// effect can be exported.
	Contents Contents
	// Files are the sources that consist of files, by name. Defaults to none.
	Files map[string]FileStore
	// Past has transactions of earlier runs. Defaults to none.
	Past interface{ Earlier() []wire.Record }
	// Proxy serves VPP's whole binary API to GoVPP's proxy client. Defaults to none: the
	// path answers 503.
	Proxy http.Handler
	// Paths are further ones, of the program that has this agent. CheckPaths finds mistakes. Defaults
	// to none.
	Paths []Path
	// Health tells whether the agent is ready. Defaults to none: the paths answer 404.
	Health *health.Health
	// Logs is the table of log levels. Defaults to none: the paths answer 404.
	Logs Logs
	// Telemetry reads counters. What it lacks answers 404.
	Telemetry counters.Readers
	// Secrets includes secrets in dumps, such as the keys of WireGuard and IPsec.
	// It also opens all of VPP's command line. Set it only for listeners that are
	// restricted to administrators of this host. Otherwise dumps contain "(secret)",
	// except for users with the permission.
	Secrets bool
	// Socket is the path of the agent's own socket, which refusals name. Defaults to none.
	Socket string
	// MaxBody is the maximum size of a request's body in bytes. Defaults to 8 MiB.
	MaxBody int64
	// Memory is shared with others that take much memory for a moment. Defaults to one for
	// requests.
	Memory *budget.Budget
	// Ended is closed when the listener begins to stop: streams end. Defaults to none: streams
	// end with their connection. A Server sets it.
	Ended <-chan struct{}
	Log   *slog.Logger // Defaults to discarding

	// guard knows the users. nil: everybody may read, and with readOnly nobody may change anything.
	guard    *auth.Guard
	readOnly bool
	// answerTime is how long an expensive answer may take. Defaults to 2 min; negative: no limit.
	answerTime time.Duration
	// maxNeed is about the most memory, in bytes, that a plan, a check of values or a dump may take. 0: no bound.
	maxNeed int64
}

// defaultMemory is the default of Options.Memory, in bytes: one large request at a time, or
// a few of some megabytes.
const defaultMemory = 32 << 20

// defaultMaxBody is the default of Options.MaxBody, in bytes.
const defaultMaxBody = 8 << 20

// handler serves the endpoints. Its fields do not change; the scheduler is safe for
// concurrent use.
type handler struct {
	Options
	// The scheduler of Options. Handlers read its snapshots, or commit transactions that take
	// their turn.
	sched *scheduler.Scheduler
	// They hold a token for each request that is served: an expensive one, one of these that
	// reads the actual state back, and one with a large body.
	turns, reading, largeBodies chan struct{}
	// The clients of GET /events, of this listener.
	streams *events.Streams
	waiter  *waiting.Waiter // the clients of POST /scheduler/wait
	// The memory of their requests, and a token for each of the large ones that are read.
	waits      *budget.Budget
	largeWaits chan struct{}
	public     bool // nobody may see details
}

// Handler returns a handler for all paths. It refuses requests of browsers on behalf
// of other sites.
func Handler(o Options) http.Handler {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	o.Memory = cmp.Or(o.Memory, budget.New(defaultMemory))
	if o.answerTime = cmp.Or(o.answerTime, defaultWriteTimeout); o.answerTime < 0 {
		o.answerTime = deadline.Never
	}
	h := &handler{
		Options: o, sched: o.Scheduler, waits: budget.New(memoryOfWaits), largeWaits: make(chan struct{}, maxLargeWaits),
		turns: make(chan struct{}, maxExpensive), reading: make(chan struct{}, maxReading), largeBodies: make(chan struct{}, 1),
	}
	h.streams = events.New(events.Options{Scheduler: o.Scheduler, Sources: h.sourcesNow, Label: o.Label, Ended: o.Ended})
	h.waiter = waiting.New(waiting.Options{Scheduler: o.Scheduler, Short: h.short, Incomplete: h.incomplete, Relist: h.relist, Ended: o.Ended})
	mux := http.NewServeMux()
	mux.HandleFunc("/", endpoint.UnknownPath(h.endpoints, mux.Handler))
	methods := map[string][]string{} // by pattern
	for _, e := range h.endpoints() {
		e = h.protected(h.limited(detailed(e)))
		mux.HandleFunc(e.Method+" "+e.Pattern(), e.Handle)
		methods[e.Pattern()] = append(methods[e.Pattern()], e.Method)
	}
	for pattern, allowed := range methods {
		mux.HandleFunc(pattern, endpoint.MethodNotAllowed(pattern, allowed))
	}
	// Browsers send the origin of a page. Requests that could change something are
	// refused if it is another site's.
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reply.Fail(w, reply.Status(http.StatusForbidden, errors.New("requests from pages of other sites are not allowed")))
	}))
	return h.labelled(guard.Handler(mux))
}

// detailed adds the failed values to the error of a transaction, so that a client can show each of them.
func detailed(e endpoint.Endpoint) endpoint.Endpoint {
	serve := e.Serve
	e.Serve = func(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
		err := serve(w, r, q)
		if failed, ok := err.(*scheduler.TxnError); ok { //nolint:errorlint // one with a status has them already
			return reply.Detailed(http.StatusInternalServerError, err, failures(failed))
		}
		return err
	}
	return e
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
			reply.Fail(w, reply.Status(http.StatusMisdirectedRequest, fmt.Errorf("this agent has the label %s, and the request is for %s", h.Label, expected)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// index answers an HTML page with all paths.
func (h *handler) index(w http.ResponseWriter, _ *http.Request, _ endpoint.Query) error {
	endpoint.Index(w, h.endpoints())
	return nil
}

// openAPI answers the OpenAPI document.
func (h *handler) openAPI(w http.ResponseWriter, _ *http.Request, _ endpoint.Query) error {
	return reply.JSON(w, endpoint.OpenAPI(h.Version.Version, h.guard != nil, h.endpoints()))
}

// endpoints returns all paths in the order of the index.
func (h *handler) endpoints() []endpoint.Endpoint {
	return slices.Concat(h.aboutAgent(), ui.Endpoints(), h.schedulerPaths(), connections.Connections{Scheduler: h.sched}.Endpoints(), h.pages().Endpoints(), h.configurationPaths(), h.trials().Endpoints(), h.dumps(), h.Telemetry.Endpoints(), h.logins(), h.added())
}

// aboutAgent returns the paths about the agent itself, its sources and its VPP.
func (h *handler) aboutAgent() []endpoint.Endpoint {
	return slices.Concat([]endpoint.Endpoint{
		endpoint.Get("/", endpoint.Any, "", "list of the paths", h.index).Writes("text/html"),
		endpoint.Get("/openapi.json", endpoint.Any, "", "this API for programs (OpenAPI 3.0)", h.openAPI).Answers(map[string]any{}),
	}, h.healthPaths(), []endpoint.Endpoint{
		endpoint.Get("/events", endpoint.Dump, "", "server-sent events of what changes: values, transactions, sources, connections", h.events).Writes("text/event-stream"),
		endpoint.Get("/info/version", endpoint.Info, "", "version of the agent", h.version).Answers(wire.Version{}),
		endpoint.Get("/info/models", endpoint.Info, "class=", "models: the kinds of values, with their keys and messages", h.models).Answers([]wire.Model{}),
		endpoint.Get("/info/models/{model}", endpoint.Info, "", "one model, with the .proto files of its message", h.model).Answers(wire.Model{}),
		endpoint.Get("/sources", endpoint.Info, "key= or key-prefix=", "state of the sources; for keys: which sources hold them, and which one takes effect", h.sources).Answers([]wire.Source{}),
		endpoint.Get("/sources/{source}/forget", endpoint.Write, "", "remove the values of a source that held keys at the last run and is not configured now", h.forgetSource).By(http.MethodPost).Answers(wire.Record{}),
		endpoint.Get("/vpp/info", endpoint.Info, "", "connection, version, features and plugins of VPP", h.vpp).Answers(wire.VPP{}),
		endpoint.Get("/vpp/command", endpoint.VPP, "", "output of a line of VPP's command line", h.vppCommand).By(http.MethodPost).Takes(reply.JSONMedia).Answers(""),
		endpoint.Get(proxyPath, endpoint.VPP, "", "VPP's binary API for GoVPP's proxy client, if govpp.conf enables it", h.proxy).By(http.MethodConnect).Writes("application/octet-stream"),
		endpoint.Get("/log/list", endpoint.Log, "", "log levels", h.logList).Answers([]wire.LogLevel{}),
		endpoint.Get("/log/{logger}/{level}", endpoint.Log, "", "set a log level", h.setLogLevel).By(http.MethodPut).Answers(wire.LogLevel{}),
	})
}

// schedulerPaths returns the paths of values, their states and their history.
func (h *handler) schedulerPaths() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		endpoint.Get("/drift", endpoint.Dump, "", "reads back all values, and lists those that differ from the declared ones; nothing is changed", h.drift).Answers(wire.Drift{}).FromSystem(),
		endpoint.Get("/scheduler/dump", endpoint.Dump, "descriptor= or key-prefix=, view=SB|NB|cached, secrets=0|1", "values of a descriptor; without arguments: the list of descriptors", h.dump).Answers([]wire.DumpEntry{}).FromSystem(),
		endpoint.Get("/scheduler/status", endpoint.Dump, "key= or descriptor= or key-prefix=", "state of values", h.status).Answers([]wire.BaseValueStatus{}),
		endpoint.Get("/scheduler/txn-history", endpoint.Dump, "seq-num= or since=, until= (UNIX ns); format=json|text; earlier=1", "transactions: planned operations and their results; earlier: those of earlier runs of the agent, without values", h.history).Answers([]wire.Record{}).Costly(),
		endpoint.Get("/scheduler/key-timeline", endpoint.Dump, "key=, time= (UNIX ns)", "history of one key", h.keyTimeline).Answers([]wire.Node{}).Costly(),
		endpoint.Get("/scheduler/graph-snapshot", endpoint.Dump, "time= (UNIX ns)", "all values and their relations", h.snapshot).Answers([]wire.Node{}).Costly(),
		endpoint.Get("/scheduler/flag-stats", endpoint.Dump, "flag=, prefix= (many)", "how often each value of a flag occurs", h.flagStats).Answers(wire.FlagStats{}).Costly(),
		endpoint.Get("/scheduler/graph", endpoint.Dump, "txn=, format=svg|png|dot|raw", "picture of the values and their relations", h.graph).Writes("image/svg+xml").Costly(),
		endpoint.Get("/scheduler/stats", endpoint.Stats, "", "number and duration of operations", h.stats).Answers(counts.Stats{}).Costly(),
		endpoint.Get("/scheduler/explain", endpoint.Dump, "key=, format=json|text", "why a value is not applied", h.explain).Answers(wire.Explanation{}).Costly(),
		endpoint.Get("/scheduler/plan", endpoint.Validate, "format=json|text, replace=1, as=, add=1, new=1", "operations that these values would cause; as: if they were the content of a source, or the text of one of its files; add: if they joined that content; new: if that source may be a client that has declared nothing yet; nothing is changed", h.plan).By(http.MethodPost).Takes(yamlMedia).Answers(wire.Plan{}).Costly(),
		endpoint.Get("/scheduler/validate", endpoint.Validate, "", "errors of these values and conflicts among them", h.validate).By(http.MethodPost).Takes(yamlMedia).Answers([]wire.Invalid{}).Costly(),
		endpoint.Get("/scheduler/wait", endpoint.Dump, "", "answers when values have a state, at the latest after a minute", h.wait).By(http.MethodPost).Takes(reply.JSONMedia).Answers(wire.Waited{}),
		endpoint.Get("/scheduler/retry", endpoint.Write, "key=", "retry a failed value and the values derived from it", h.retry).By(http.MethodPost).Answers(wire.Record{}),
		endpoint.Get("/scheduler/downstream-resync", endpoint.Write, "retry=1, verbose=1", "read back the actual state and repair it", h.resync).By(http.MethodPost).Answers(wire.Record{}),
	}
}

// pages returns the lists of values and transactions in parts.
func (h *handler) pages() pages.Pages { return pages.Pages{Scheduler: h.sched, Short: h.short} }

// Trials keeps changes on trial. *trial.Trials implements it.
type Trials = trials.Keeper

// trials returns the paths of changes on trial.
func (h *handler) trials() trials.Trials {
	return trials.Trials{Keeper: h.Trials, Default: DefaultLayer}
}

// configurationPaths returns the paths of the declared values as one document.
func (h *handler) configurationPaths() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		endpoint.Get("/configuration", endpoint.Read, "model= (many), key= (many), source=, format=yaml|json, secrets=0|1", "declared values as one YAML document, which can be declared again; source: what this source declares", h.configuration).Writes(yamlMedia).Costly(),
		endpoint.Get("/configuration", endpoint.Write, "replace=1, revert=1, datasrc=, trial=, version=", "declare the values of a document; replace: and no others of this data source; trial: for a time such as 60s, unless they are confirmed; version: only if the data source still has the value with this Version, which GET with format=json answers", h.putConfiguration).By(http.MethodPut).Takes(yamlMedia).Answers(wire.Nothing{}).Costly(),
		endpoint.Get("/configuration", endpoint.Write, "key= (many), all=1, revert=1, datasrc=", "remove the values of a document, of keys, or all of this data source", h.deleteConfiguration).By(http.MethodDelete).Takes(yamlMedia).Answers(wire.Nothing{}).Costly(),
		endpoint.Get("/configuration/validate", endpoint.Validate, "", "{} if a document is valid; otherwise status 400 and its errors", h.validateConfiguration).By(http.MethodPost).Takes(yamlMedia).Answers(wire.Nothing{}).Costly(),
		endpoint.Get("/info/configuration/jsonschema", endpoint.Info, "fieldnames=both|onlyproto|onlyjson", "JSON schema of a configuration document", h.jsonSchema).Answers(map[string]any{}),
	}
}

// proxyPath is where GoVPP's proxy client connects.
const proxyPath = "/_goRPC_"
