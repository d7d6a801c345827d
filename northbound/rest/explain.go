package rest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler/explain"
)

// explain answers the reason why a value is not applied.
func (h *handler) explain(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
	key, err := q.Required("key", "the key of a value, such as config/linux/interfaces/v2/interface/veth1")
	if err != nil {
		return reply.BadRequest(err)
	}
	format, err := q.Choice("format", "json", "text")
	if err != nil {
		return reply.BadRequest(err)
	}
	e := explain.Key(h.sched, h.short(key))
	declared := h.declared(r.Context(), e.Key)
	e.Text += declaredBy(declared)
	if format == "text" {
		return reply.Text(w, reply.Mapped([]explain.Explanation{e}, explain.Explanation.String))
	}
	out := explanationOf(e)
	for _, d := range declared {
		out.Declared = append(out.Declared, declarationOf(d))
	}
	return reply.JSON(w, out)
}

// maxAsking is how long an explanation waits for the declarations of its value: when the orchestrator is stuck, people
// need it most.
const maxAsking = time.Second

// declared returns the declarations of a value; none: there are none, or nobody answers.
func (h *handler) declared(ctx context.Context, key string) []orchestrator.Declaration {
	if h.Sources == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxAsking)
	defer cancel()
	all, err := h.Sources.Declarations(ctx, key)
	if err != nil {
		return nil // the explanation is true without it
	}
	return all
}

// declaredBy says who wrote a value: "; declared by etcd, revision 57". Of several, it says which one takes effect.
func declaredBy(all []orchestrator.Declaration) string {
	var out []string
	for _, d := range all {
		text := d.Writer
		switch {
		case len(all) == 1:
		case d.Err != nil:
			text += " (" + d.State() + ")"
		case d.Effective:
			text += " (takes effect)"
		}
		out = append(out, text)
	}
	if out == nil {
		return ""
	}
	return "; declared by " + strings.Join(out, "; ")
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
