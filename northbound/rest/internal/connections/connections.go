// Package connections has the paths of the connections to what is programmed, and of what is unknown while they are
// lost.
package connections

import (
	"errors"
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/records"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// Connections are those of a scheduler.
type Connections struct{ Scheduler *scheduler.Scheduler }

// Endpoints returns the paths.
func (h Connections) Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		endpoint.Get("/scheduler/connections", endpoint.Dump, "", "states of the connections to what is programmed, and what is unknown", h.list).Answers([]wire.Connection{}),
		endpoint.Get("/scheduler/connections/{connection}/forget", endpoint.Write, "", "take the values of a lost connection for gone", h.forget).By(http.MethodPost).Answers(wire.Record{}),
	}
}

// list answers the states of the connections.
func (h Connections) list(w http.ResponseWriter, _ *http.Request, _ endpoint.Query) error {
	out := []wire.Connection{}
	for _, c := range h.Scheduler.Connections() {
		out = append(out, wire.Connection{Name: c.Name, State: c.State.String(), Since: c.Since, Error: c.Why, Unknown: Unknown(c.Kinds)})
	}
	return reply.JSON(w, out)
}

// forget records that the system behind a connection is gone for good, and answers the transaction. Status
// 404: no such connection; 409: it is not lost.
func (h Connections) forget(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	record, err := h.Scheduler.Forget(r.Context(), r.PathValue("connection"))
	switch {
	case errors.Is(err, scheduler.ErrNoConnection):
		return reply.NotFound(err)
	case errors.Is(err, scheduler.ErrNotLost):
		return reply.Status(http.StatusConflict, err)
	case record == nil:
		return err
	}
	return reply.One(w, records.Of(record))
}

// Unknown converts unknown kinds.
func Unknown(kinds []scheduler.UnknownKind) (out []wire.Unknown) {
	for _, k := range kinds {
		out = append(out, wire.Unknown{Descriptor: k.Descriptor, Reason: k.Why, Since: k.Since})
	}
	return out
}
