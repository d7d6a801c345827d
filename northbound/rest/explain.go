package rest

import (
	"net/http"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler/explain"
)

// explain answers the reason why a value is not applied.
func (h *handler) explain(w http.ResponseWriter, _ *http.Request, q query) error {
	key, err := q.required("key", "the key of a value, such as config/linux/interfaces/v2/interface/veth1")
	if err != nil {
		return badRequest(err)
	}
	format, err := q.choice("format", "json", "text")
	if err != nil {
		return badRequest(err)
	}
	e := explain.Key(h.sched, h.short(key))
	if format == "text" {
		return replyText(w, mapped([]explain.Explanation{e}, explain.Explanation.String))
	}
	return replyJSON(w, explanationOf(e))
}

// explanationOf converts an explanation with its causes. The tree is finite: the
// scheduler does not repeat a key.
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
