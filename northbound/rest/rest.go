// Package rest shows the state of the agent over HTTP: values, transactions, plans
// and explanations. Nothing can be declared here; stores are for that.
//
//	server := rest.Server{Config: config, Options: rest.Options{Scheduler: sched, Log: log}}
//	err := server.Run(ctx)
//
// GET / lists the paths, docs/rest.md describes them, and package wire defines the
// answers. [Handler] serves all of it without a network.
//
// The server listens on 127.0.0.1:9191. This release has no authentication: every
// client that reaches the address can read the state and request a resync. Other
// addresses are possible, with a warning. Configuration that asks for users or TLS
// is refused.
//
//	request                     | data                  | waits for transactions
//	dumps NB and cached, graphs | snapshot of scheduler | no
//	dump SB                     | southbound, read now  | no
//	plan, retry, resync         | scheduler             | yes, takes its turn
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
	"log/slog"
	"net/http"
	"time"

	"github.com/keyplane/keyplane/models/structured/document"
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
	// Secrets includes secrets in dumps, such as the keys of WireGuard and IPsec.
	// Set it only for listeners that are restricted to the agent's own user.
	// Otherwise dumps contain "(secret)".
	Secrets bool
	// MaxBody is the maximum size of a request's body in bytes. Defaults to 8 MiB.
	MaxBody int64
	// Gate is shared with others that read large texts. Defaults to one for the bodies of requests.
	Gate *document.Gate
	Log  *slog.Logger // Defaults to discarding

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
	for _, e := range h.endpoints() {
		e = h.limited(e)
		mux.HandleFunc(e.method+" "+e.pattern(), e.answer)
		mux.HandleFunc(e.pattern(), e.methodNotAllowed)
	}
	// Browsers send the origin of a page. Requests that could change something are
	// refused if it is another site's.
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, statusError{http.StatusForbidden, errors.New("requests from pages of other sites are not allowed")})
	}))
	return guard.Handler(mux)
}

// endpoints returns all paths in the order of the index.
func (h *handler) endpoints() []endpoint {
	return []endpoint{
		{"GET", "/", "", "list of the paths", h.index, false},
		{"GET", "/info/version", "", "version of the agent", h.version, false},
		{"GET", "/sources", "key= or key-prefix=", "state of the sources; for keys: which sources hold them, and which one takes effect", h.sources, false},
		{"GET", "/vpp/info", "", "connection, version, features and plugins of VPP", h.vpp, false},
		{"GET", "/scheduler/dump", "descriptor= or key-prefix=, view=SB|NB|cached", "values of a descriptor; without arguments: the list of descriptors", h.dump, true},
		{"GET", "/scheduler/status", "key= or descriptor= or key-prefix=", "state of values", h.status, false},
		{"GET", "/scheduler/txn-history", "seq-num= or since=, until= (UNIX ns); format=json|text", "transactions: planned operations and their results", h.history, true},
		{"GET", "/scheduler/key-timeline", "key=, time= (UNIX ns)", "history of one key", h.keyTimeline, true},
		{"GET", "/scheduler/graph-snapshot", "time= (UNIX ns)", "all values and their relations", h.snapshot, true},
		{"GET", "/scheduler/flag-stats", "flag=, prefix= (many)", "how often each value of a flag occurs", h.flagStats, true},
		{"GET", "/scheduler/graph", "txn=, format=svg|png|dot|raw", "picture of the values and their relations", h.graph, true},
		{"GET", "/scheduler/stats", "", "number and duration of operations", h.stats, false},
		{"GET", "/scheduler/explain", "key=, format=json|text", "why a value is not applied", h.explain, false},
		{"POST", "/scheduler/plan", "format=json|text, replace=1", "operations that these values would cause; nothing is changed", h.plan, true},
		{"POST", "/scheduler/validate", "", "errors of these values and conflicts among them", h.validate, true},
		{"POST", "/scheduler/retry", "key=", "retry a failed value and the values derived from it", h.retry, false},
		{"POST", "/scheduler/downstream-resync", "retry=1, verbose=1", "read back the actual state and repair it", h.resync, false},
	}
}
