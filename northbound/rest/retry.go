package rest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/keyplane/keyplane/scheduler"
)

// retry retries a failed value and answers the transaction. Status 404: no such
// value; 409: it has not failed, or a verb of it is still running.
func (h *handler) retry(w http.ResponseWriter, r *http.Request, q query) error {
	key, err := q.required("key", "the key of a value")
	if err != nil {
		return badRequest(err)
	}
	key = h.short(key)
	record, err := h.sched.RetryKey(r.Context(), key, scheduler.RetryPolicy{})
	if errors.Is(err, scheduler.ErrNothingFailed) {
		return h.nothingFailed(key, err)
	}
	if record == nil && errors.Is(err, scheduler.ErrNoAnswer) {
		return statusError{http.StatusConflict, err}
	}
	if err != nil {
		return err
	}
	return replyJSON(w, recordOf(record))
}

// nothingFailed answers the actual state of the value.
func (h *handler) nothingFailed(key string, err error) error {
	st, there := h.sched.Status(key)
	if !there {
		return notFound(fmt.Errorf("%s: there is no such value", key))
	}
	return statusError{http.StatusConflict, fmt.Errorf("%w: it is %s", err, st.State)}
}
