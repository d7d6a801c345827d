package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/internal/waiting"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// wait answers when the values of the request have a state.
func (h *handler) wait(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	text, err := h.textOf(w, r)
	if err != nil {
		return err
	}
	var q wire.Wait
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&q); err != nil {
		return reply.BadRequest(fmt.Errorf(`expected {"State": "configured", "Keys": ["config/..."]}: %w`, err))
	}
	out, err := h.waiter.Wait(r.Context(), q)
	switch {
	case errors.Is(err, waiting.ErrRequest):
		return reply.BadRequest(err)
	case errors.Is(err, waiting.ErrFull):
		w.Header().Set("Retry-After", "10")
		return reply.Status(http.StatusServiceUnavailable, err)
	case err != nil:
		return err
	}
	return reply.JSON(w, out)
}

// incomplete returns the names of the sources that have not listed their values yet.
func (h *handler) incomplete() (out []string) {
	for _, s := range h.sourcesNow() {
		if !s.Complete {
			out = append(out, s.Name)
		}
	}
	return out
}
