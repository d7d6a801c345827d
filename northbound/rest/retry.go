package rest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/records"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/scheduler"
)

// retry retries a failed value and answers the transaction. Status 404: no such
// value; 409: it has not failed, or a verb of it is still running.
func (h *handler) retry(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
	key, err := q.Required("key", "the key of a value")
	if err != nil {
		return reply.BadRequest(err)
	}
	key = h.short(key)
	record, err := h.sched.Retry(r.Context(), key)
	if record == nil && err == nil {
		return h.nothingFailed(key)
	}
	if record == nil && errors.Is(err, scheduler.ErrNoAnswer) {
		return reply.Status(http.StatusConflict, err)
	}
	if err != nil {
		return err
	}
	return reply.One(w, records.Of(record))
}

// nothingFailed returns an error with the state of the value. A client may retry a value that
// has meanwhile been applied; the state tells it so.
func (h *handler) nothingFailed(key string) error {
	st, there := h.sched.Status(key)
	if !there {
		return reply.NotFound(fmt.Errorf("%s: there is no such value", key))
	}
	return reply.Status(http.StatusConflict, fmt.Errorf("%s: the value has not failed: it is %s", key, st.State))
}
