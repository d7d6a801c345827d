package rest

import (
	"fmt"
	"net/http"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/describe"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// models answers all models, sorted by name. Programs built on package agent have more than the
// built-in ones, so clients ask instead of relying on those that they were built with.
func (h *handler) models(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	class, err := q.One("class")
	if err != nil {
		return err
	}
	out := []wire.Model{}
	implemented := h.implemented()
	for _, m := range h.sched.Models().All() {
		if class == "" || class == m.Class {
			out = append(out, modelOf(m, implemented))
		}
	}
	return reply.JSON(w, out)
}

// model answers one model, with the files that declare its message.
func (h *handler) model(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	m, ok := h.sched.Models().ByName(r.PathValue("model"))
	if !ok {
		return reply.NotFound(fmt.Errorf("no model %q: GET /info/models lists them", r.PathValue("model")))
	}
	out := modelOf(m, h.implemented())
	// Deterministic, so that an unchanged agent gives an unchanged answer.
	described, err := describe.Files(m)
	if err != nil {
		return err
	}
	files, err := proto.MarshalOptions{Deterministic: true}.Marshal(described)
	if err != nil {
		return err
	}
	out.Files = files
	return reply.JSON(w, out)
}

// implemented returns the prefixes of keys with a descriptor.
func (h *handler) implemented() map[string]bool {
	out := map[string]bool{}
	for _, d := range inspect.Descriptors(h.sched) {
		if d.Modelled {
			out[d.Prefix] = true
		}
	}
	return out
}

// modelOf describes a model for clients. implemented has the prefixes of models that a
// descriptor of this agent applies; values of the others become UNIMPLEMENTED.
func modelOf(m *models.Model, implemented map[string]bool) wire.Model {
	out := wire.Model{
		Name: m.Name(), Class: m.Class, ProtoName: m.ProtoName(), ProtoFile: m.ProtoFile(), KeyPrefix: m.Prefix(),
		NameTemplate: m.NameTemplate(), KeyFields: m.KeyFields(), Implemented: implemented[m.Prefix()],
	}
	if group, field := m.ConfigField(); group != "" {
		out.ConfigField = group + "." + field
	}
	return out
}
