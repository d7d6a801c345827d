package rest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/keyplane/keyplane/scheduler"
)

// tryAgain has a failed value tried again, and answers the transaction.
func (h *handler) retry(w http.ResponseWriter, r *http.Request, q query) error {
	key, err := q.required("key", "that of a value")
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

// nothingFailed says how the value is instead.
func (h *handler) nothingFailed(key string, err error) error {
	st, there := h.sched.Status(key)
	if !there {
		return notFound(fmt.Errorf("%s: there is no such value", key))
	}
	return statusError{http.StatusConflict, fmt.Errorf("%w: it is %s", err, st.State)}
}
