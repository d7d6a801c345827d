package rest

import (
	"net/http"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler/explain"
)

// explain answers the reason why a value is not applied.
func (h *handler) explain(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	key, err := q.Required("key", "the key of a value, such as config/linux/interfaces/v2/interface/veth1")
	if err != nil {
		return reply.BadRequest(err)
	}
	format, err := q.Choice("format", "json", "text")
	if err != nil {
		return reply.BadRequest(err)
	}
	e := explain.Key(h.sched, h.short(key))
	if format == "text" {
		return reply.Text(w, reply.Mapped([]explain.Explanation{e}, explain.Explanation.String))
	}
	return reply.JSON(w, explanationOf(e))
}

// explanationOf converts an explanation with its causes. The tree is finite: the scheduler
// does not repeat a key. Its depth is that of the chain of dependencies.
func explanationOf(e explain.Explanation) wire.Explanation {
	out := wire.Explanation{Key: e.Key, Text: e.Text}
	if e.Key != "" {
		out.State = e.State.String()
	}
	for _, c := range e.Because {
		out.Because = append(out.Because, explanationOf(c))
	}
	return out
}

// short returns a key without the agent's own prefix, so that clients can use keys
// as stores have them.
func (h *handler) short(key string) string {
	return strings.TrimPrefix(key, "/vnf-agent/"+h.Label+"/")
}
