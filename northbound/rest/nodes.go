package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/nodes"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// keyTimeline answers the revisions of a key or, with time, the revision at that
// moment (null if there was none).
func (h *handler) keyTimeline(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	key, err := q.Required("key", "the key of a value")
	if err != nil {
		return err
	}
	key = h.short(key)
	never := time.Time{}
	t, err := q.Moment("time", never)
	if err != nil {
		return err
	}
	past := nodes.Around(h.sched, key)
	if t.Equal(never) {
		return reply.Array(w, past.Revisions(key))
	}
	if n, there := past.One(key, t); there {
		return reply.JSON(w, n)
	}
	return reply.JSON(w, nil)
}

// snapshot answers the nodes of one moment. The moment may be in the past, as far back as
// the history reaches.
func (h *handler) snapshot(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	t, err := q.Moment("time", time.Now())
	if err != nil {
		return err
	}
	return reply.Array(w, nodes.Of(h.sched, nodes.All).At(t))
}

// flagStats answers how often each value of a flag occurs in all revisions.
func (h *handler) flagStats(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	names := wire.FlagNames()
	flag, err := q.Required("flag", "one of "+strings.Join(names, ", "))
	if err != nil {
		return err
	}
	if !slices.Contains(names, flag) {
		return fmt.Errorf("argument flag=%q: expected one of %s", flag, strings.Join(names, ", "))
	}
	prefixes := slices.Clone(q.Values["prefix"])
	for i, p := range prefixes {
		prefixes[i] = h.short(p)
	}
	keep, err := nodes.Under(prefixes)
	if err != nil {
		return reply.BadRequest(err)
	}
	return reply.JSON(w, nodes.Of(h.sched, keep).FlagStats(flag))
}
