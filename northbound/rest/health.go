package rest

import (
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// probes returns a handler of the paths of probes, and of nothing else. It shows nobody the reasons, since any host may
// reach it.
func probes(o Options) http.Handler {
	h := &handler{Options: o, public: true}
	mux := http.NewServeMux()
	for _, e := range h.healthPaths() {
		mux.HandleFunc(e.Method+" "+e.Pattern(), e.Handle)
	}
	return mux
}

// healthPaths returns the paths that supervisors ask.
func (h *handler) healthPaths() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		endpoint.Get("/liveness", endpoint.Open, "", "whether the agent runs", h.liveness).Answers(wire.AgentStatus{}),
		endpoint.Get("/readiness", endpoint.Open, "", "whether the network is as declared as far as possible; otherwise status 500 and the reasons", h.readiness).Answers(wire.AgentStatus{}),
	}
}

// liveness answers 200 while the process serves requests. A store or a VPP that is down is
// no reason to restart the agent, so the state is INIT or OK, but never ERROR. A restart
// would only do harm: the running agent keeps the network as it is, and continues when
// the store or VPP is back.
func (h *handler) liveness(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	if h.Health == nil {
		return reply.NotFound(errNoHealth)
	}
	st := h.Health.Status()
	if st.State == wire.StateError {
		st.State = wire.StateInit
	}
	st.Missing, st.Unapplied = nil, nil
	return h.replyStatus(w, r, http.StatusOK, st)
}

// readiness answers 200 if the network is as declared as far as possible, and otherwise
// 500. The body names the reasons, so that an operator need not search the log.
func (h *handler) readiness(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	if h.Health == nil {
		return reply.NotFound(errNoHealth)
	}
	st := h.Health.Status()
	code := http.StatusOK
	if st.State != wire.StateOK {
		code = http.StatusInternalServerError
	}
	return h.replyStatus(w, r, code, st)
}

// replyStatus answers a status. A sender without credentials sees the state only, because
// errors name hosts and keys.
func (h *handler) replyStatus(w http.ResponseWriter, r *http.Request, code int, st wire.AgentStatus) error {
	if !h.trusted(r) {
		st = wire.AgentStatus{State: st.State}
	}
	reply.Header(w, reply.JSONType, code)
	reply.Encode(w, "", st)
	return nil
}
