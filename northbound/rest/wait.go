package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
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
	if err := h.addDocument(r.Context(), &q); err != nil {
		return err
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

// addDocument adds the values of the document to the values of a request.
func (h *handler) addDocument(ctx context.Context, q *wire.Wait) error {
	if q.Document == "" {
		return nil
	}
	items, leave, err := h.itemsOf(ctx, []byte(q.Document))
	if err != nil {
		return err
	}
	defer leave()
	for _, it := range items {
		if it.Err != nil {
			return reply.BadRequest(fmt.Errorf("line %d of Document: %s", it.Line, messageOnly(it.Err)))
		}
		q.Values = append(q.Values, wire.WaitValue{Key: it.Key, Value: it.Value})
	}
	return nil
}

// incomplete returns the names of the sources whose stores were not read since a time, with their
// values in effect. Unless all is set, they are only those that are connected to their stores.
func (h *handler) incomplete(since time.Time, all bool) (out []string) {
	if h.Sources == nil {
		return nil
	}
	for _, s := range h.Sources.Health() {
		if s.Confirmed.Before(since) && (all || s.State == kvdbsync.Synced) {
			out = append(out, s.Source)
		}
	}
	return out
}

// relist has the stores read again.
func (h *handler) relist() {
	if h.Sources != nil {
		h.Sources.Relist()
	}
}
