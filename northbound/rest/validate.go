package rest

import (
	"errors"
	"net/http"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// validate answers which values of the body are wrong in themselves, whatever else there
// is. It takes no turn between transactions.
func (h *handler) validate(w http.ResponseWriter, r *http.Request, _ query) error {
	items, err := bodyOf(w, r)
	if err != nil {
		return err
	}
	_, invalid := h.changes(items, h.checked)
	return replyJSON(w, append([]wire.Invalid{}, invalid...))
}

// checked is change, and has what is derived from the value checked too. That nothing
// implements a value is no fault of it.
func (h *handler) checked(it structured.Item) (scheduler.Change, error) {
	c, err := h.change(it)
	if errors.Is(err, scheduler.ErrUnimplemented) && !errors.Is(err, models.ErrNoModel) {
		return scheduler.Unwant(h.short(it.Key)), nil
	}
	if err == nil && c.Value != nil {
		err = h.sched.Validate(scheduler.KeyValue{Key: c.Key, Value: c.Value.Message()})
	}
	return c, err
}
