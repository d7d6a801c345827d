package rest

import (
	"cmp"
	"errors"
	"net/http"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// validate answers the values of the body that are invalid by themselves, or
// conflict with each other. It does not depend on other values, and does not wait
// for transactions.
func (h *handler) validate(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	text, err := h.textOf(w, r)
	if err != nil {
		return err
	}
	items, _, leave, err := h.itemsToTry(r.Context(), text)
	if err != nil {
		return err
	}
	defer leave()
	changes, invalid, _ := h.changes(items, h.checkedChange)
	invalid = append(invalid, h.conflicts(items, changes)...)
	return reply.JSON(w, append([]wire.Invalid{}, invalid...))
}

// checkedChange is change, followed by the validation of derived values. A value
// without a descriptor in this agent is valid.
func (h *handler) checkedChange(it structured.Item) (scheduler.Change, error) {
	c, err := h.change(it)
	if errors.Is(err, scheduler.ErrUnimplemented) && !errors.Is(err, models.ErrNoModel) {
		return scheduler.Unwant(h.short(it.Key)), nil
	}
	if err == nil && c.Value != nil {
		err = h.valid(c.Key, c.Value.Message())
	}
	return c, err
}

// valid returns why a transaction would refuse a value. One without a descriptor in this agent is valid.
func (h *handler) valid(key string, m proto.Message) error {
	err := h.sched.Validate(scheduler.KeyValue{Key: key, Value: m})
	if all, ok := err.(interface{ Unwrap() []error }); ok && len(all.Unwrap()) == 1 {
		if of, ok := errors.AsType[scheduler.KeyError](err); ok && of.Key == key {
			err = of.Err // the caller has the key
		}
	}
	if errors.Is(err, scheduler.ErrUnimplemented) {
		return nil
	}
	return models.Bounded(err)
}

// conflicts returns the valid items that conflict with another item.
func (h *handler) conflicts(items []structured.Item, changes []scheduler.Change) (out []wire.Invalid) {
	var values []scheduler.KeyValue
	for _, c := range changes {
		if c.Value != nil {
			values = append(values, scheduler.KeyValue{Key: c.Key, Value: c.Value.Message()})
		}
	}
	all, _ := h.sched.Validate(values...).(interface{ Unwrap() []error })
	if all == nil {
		return nil
	}
	lines := map[string]int{}
	for _, it := range items {
		lines[h.short(it.Key)] = it.Line
	}
	for _, err := range all.Unwrap() {
		// Each value is valid by itself, so the error is a conflict.
		if of, ok := errors.AsType[scheduler.KeyError](err); ok {
			declared := cmp.Or(of.Base, of.Key)
			out = append(out, wire.Invalid{Key: declared, Line: lines[declared], Error: err.Error(), Fields: models.Fields(err)})
		}
	}
	return out
}
