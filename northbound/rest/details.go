package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/internal/details"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// dumps returns the endpoints of /dump. A path of existing deployments is in this table
// even if no descriptor of this agent has its model.
func (h *handler) dumps() (out []endpoint.Endpoint) {
	for _, d := range details.Paths() {
		out = append(out, endpoint.Get(d.Path, endpoint.Dump, "secrets=0|1", d.About+", read back now", func(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
			return h.details(w, r, q, d)
		}).Answers(d.Shape).FromSystem())
	}
	return out
}

// details answers one path of /dump. Without a descriptor of the model, and if the
// southbound cannot be read, the answer is a text with status 500, as existing clients
// expect it.
func (h *handler) details(w http.ResponseWriter, r *http.Request, q endpoint.Query, d details.Path) error {
	h, err := h.revealing(r, q)
	if err != nil {
		return err
	}
	found, err := h.actual(r.Context(), d.Model)
	if err == nil && d.Also != "" {
		var more []scheduler.Found[proto.Message, any]
		more, err = h.actual(r.Context(), d.Also)
		found = append(found, more...)
	}
	if err != nil {
		reply.Header(w, reply.JSONType, http.StatusInternalServerError)
		reply.Encode(w, "", fmt.Sprintf("500 Internal server error: %v", err))
		return nil
	}
	return d.Answer(w, reply.Mapped(found, h.item))
}

// actual reads back the values of a model.
func (h *handler) actual(ctx context.Context, model string) ([]scheduler.Found[proto.Message, any], error) {
	m, ok := h.sched.Models().ByName(model)
	if !ok {
		return nil, fmt.Errorf("there is no model %s", model)
	}
	all := inspect.Descriptors(h.sched)
	i := slices.IndexFunc(all, func(d inspect.Descriptor) bool { return d.Modelled && d.Prefix == m.Prefix() })
	if i < 0 {
		return nil, fmt.Errorf("this agent has no descriptor for %s", model)
	}
	return h.readBack(ctx, all[i].Name)
}

// readBack reads the actual values of a descriptor. The system may have any number of them.
func (h *handler) readBack(ctx context.Context, descriptor string) ([]scheduler.Found[proto.Message, any], error) {
	found, err := inspect.DumpWithin(ctx, h.sched, descriptor, h.maxNeed)
	if errors.Is(err, inspect.ErrTooLarge) {
		err = fmt.Errorf("%w; that is %d times max-body-bytes in http.conf: raise it, or use the agent's socket, which has no such maximum", err, needOfBody)
	}
	return found, err
}

// item converts a value that was read back.
func (h *handler) item(f scheduler.Found[proto.Message, any]) details.Item {
	out := details.Item{Value: f.Value, Meta: metadata(f.Meta), Details: metadata(f.Details)}
	if !h.Secrets {
		out.Value = models.Redacted(f.Value)
	}
	return out
}
