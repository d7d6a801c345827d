package rest

import (
	"errors"
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/records"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// connections answers the states of the connections.
func (h *handler) connections(w http.ResponseWriter, _ *http.Request, _ endpoint.Query) error {
	out := []wire.Connection{}
	for _, c := range h.sched.Connections() {
		out = append(out, wire.Connection{Name: c.Name, State: c.State.String(), Since: c.Since, Error: c.Why, Unknown: unknownOf(c.Kinds)})
	}
	return reply.JSON(w, out)
}

// forget records that the system behind a connection is gone for good, and answers the transaction. Status
// 404: no such connection; 409: it is not lost.
func (h *handler) forget(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	record, err := h.sched.Forget(r.Context(), r.PathValue("connection"))
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

// unknownOf converts unknown kinds.
func unknownOf(kinds []scheduler.UnknownKind) (out []wire.Unknown) {
	for _, k := range kinds {
		out = append(out, wire.Unknown{Descriptor: k.Descriptor, Reason: k.Why, Since: k.Since})
	}
	return out
}
