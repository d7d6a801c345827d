// Package rest shows the agent over HTTP: what stands, what was done and why, what
// would be done. Nothing can be declared here; that is what stores are for.
//
//	server := rest.Server{Config: config, Options: rest.Options{Scheduler: sched, Log: log}}
//	err := server.Run(ctx)
//
// GET / lists the paths, docs/rest.md describes them, package wire has the shapes of
// what they answer. [Handler] is all of it without a network.
//
// It listens on 127.0.0.1:9191. There is no authentication yet: whoever reaches the
// address may look and may have the system read back. So other addresses than that
// of the loopback are possible, but warned of, and configuration that asks for
// users or TLS is refused rather than ignored.
//
// Answers are made from snapshots, so no transaction waits for them, however long
// they are; they are written item by item. Only plans, resyncs and retries take their
// turn between transactions. The number of connections, the time of a request, the size of
// a body and the number of expensive answers at once are bounded; see Config.
//
// The server owns nothing but its connections. Tests run a real Scheduler with
// descriptors in memory under synctest, and compare with golden files.
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

// Options are what a Handler shows.
type Options struct {
	Scheduler *scheduler.Scheduler
	// Sources are those of what is declared. Defaults to none.
	Sources Sources
	// Label is that of the agent: keys below /vnf-agent/LABEL/ are understood as
	// well as those without. Defaults to none.
	Label   string
	Version wire.Version
	// VPP tells how VPP is. Defaults to there being none.
	VPP func(ctx context.Context) wire.VPP
	// Secrets says that dumps show secrets, such as the keys of WireGuard and IPsec. It is for
	// listeners that only the agent's own user can reach. Elsewhere they read "(secret)".
	Secrets bool
	// MaxBody is the largest body of a request, in bytes. Defaults to 8 MiB.
	MaxBody int64
	// Gate is shared with others that read large texts. Defaults to one for the bodies of requests.
	Gate *document.Gate
	Log  *slog.Logger // Defaults to discarding

	// answerTime is how long an expensive answer may take. Defaults to 2 min; negative: no limit.
	answerTime time.Duration
}

// defaultMaxBody is the default of Options.MaxBody, in bytes.
const defaultMaxBody = 8 << 20

type handler struct {
	Options
	sched *scheduler.Scheduler
	turns chan struct{} // holds a token for each expensive request that is served
}

// Handler serves all paths.
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
	// Pages of other sites that a browser shows have no business here.
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, statusError{http.StatusForbidden, errors.New("a page of another site must not change anything here")})
	}))
	return guard.Handler(mux)
}

func (h *handler) endpoints() []endpoint {
	return []endpoint{
		{"GET", "/", "", "this list", h.index, false},
		{"GET", "/info/version", "", "which build this is", h.version, false},
		{"GET", "/sources", "key= or key-prefix=", "how the sources of what is declared are; for keys: which sources have them, and which of them wins", h.sources, false},
		{"GET", "/vpp/info", "", "whether VPP is connected, which one it is, what it can do, its plugins", h.vpp, false},
		{"GET", "/scheduler/dump", "descriptor= or key-prefix=, view=SB|NB|cached", "the values of a descriptor; without arguments: what can be dumped", h.dump, true},
		{"GET", "/scheduler/status", "key= or descriptor= or key-prefix=", "the state of values", h.status, false},
		{"GET", "/scheduler/txn-history", "seq-num= or since=, until= (UNIX ns); format=json|text", "transactions: what was to be done, and what came of it", h.history, true},
		{"GET", "/scheduler/key-timeline", "key=, time= (UNIX ns)", "what became of a key", h.keyTimeline, true},
		{"GET", "/scheduler/graph-snapshot", "time= (UNIX ns)", "all values and their relations", h.snapshot, true},
		{"GET", "/scheduler/flag-stats", "flag=, prefix= (many)", "how often a flag has which value", h.flagStats, true},
		{"GET", "/scheduler/graph", "txn=, format=svg|png|dot|raw", "a picture of the values and their relations", h.graph, true},
		{"GET", "/scheduler/stats", "", "counts and times of what was done", h.stats, false},
		{"GET", "/scheduler/explain", "key=, format=json|text", "why a value is not applied", h.explain, false},
		{"POST", "/scheduler/plan", "format=json|text, replace=1", "what would be done if these values were declared; nothing is changed", h.plan, true},
		{"POST", "/scheduler/validate", "", "what is wrong with these values in themselves", h.validate, true},
		{"POST", "/scheduler/retry", "key=", "try a value again that has failed, and what is derived from it", h.retry, false},
		{"POST", "/scheduler/downstream-resync", "retry=1, verbose=1", "read back what stands, and mend it", h.resync, false},
	}
}
