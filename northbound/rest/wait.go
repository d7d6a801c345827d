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
	"github.com/keyplane/keyplane/northbound/rest/internal/body"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/internal/turns"
	"github.com/keyplane/keyplane/northbound/rest/internal/waiting"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

const (
	// memoryOfWaits is the memory, in bytes, that the requests of all waiting clients take together. A larger
	// one waits alone. It is not that of other requests, because a wait may last for a minute.
	memoryOfWaits = 8 << 20
	// smallWait is the largest body that is read without a turn, and maxLargeWaits the number of larger ones
	// that are read at once.
	smallWait     = 64 << 10
	maxLargeWaits = 2
	// maxElements is how many elements the lists and objects in a body may have together. A document is
	// one text.
	maxElements = 400_000
	// bytesOfElement is about the memory, in bytes, that an element takes besides its text.
	bytesOfElement = 100
)

// wait answers when the values of the request have a state. The client has its slot before its body
// is read, and the memory of the request until the answer.
func (h *handler) wait(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	leave, err := h.waiter.Enter()
	if err != nil {
		w.Header().Set("Retry-After", "10")
		return reply.Status(http.StatusServiceUnavailable, err)
	}
	defer leave()
	q, leave, err := h.waitOf(w, r)
	if err != nil {
		return err
	}
	defer leave()
	out, err := h.waiter.Wait(r.Context(), q)
	switch {
	case errors.Is(err, waiting.ErrRequest):
		return reply.BadRequest(err)
	case err != nil:
		return err
	}
	return reply.JSON(w, out)
}

// waitOf reads a request that waits. Its memory counts until leave is called.
func (h *handler) waitOf(w http.ResponseWriter, r *http.Request) (q wire.Wait, leave func(), err error) {
	if r.ContentLength < 0 || r.ContentLength > smallWait {
		if err := turns.Take(r.Context(), h.largeWaits, time.Now().Add(expensiveWait)); err != nil {
			return q, nil, err
		}
		defer func() { <-h.largeWaits }()
	}
	text, err := h.textOf(w, r)
	if err != nil {
		return q, nil, err
	}
	need := elements(text)
	if need > maxElements {
		return q, nil, reply.Status(http.StatusRequestEntityTooLarge, fmt.Errorf("the body has %d keys and fields; the maximum is %d: split them, or wait for models or All", need, maxElements))
	}
	need = need*bytesOfElement + 3*int64(len(text))
	if leave, err = h.waits.Enter(r.Context(), need); err != nil {
		return q, nil, err
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&q); err != nil {
		leave()
		return q, nil, reply.BadRequest(fmt.Errorf(`expected {"State": "configured", "Keys": ["config/..."]}: %w`, err))
	}
	if q.Document == "" {
		return q, leave, nil
	}
	leave() // somebody who has memory may not wait for more
	values := body.Of([]byte(q.Document))
	if leave, err = h.waits.Enter(r.Context(), need+values.Cost()); err != nil {
		return q, nil, err
	}
	if err := h.addDocument(r.Context(), &q, values); err != nil {
		leave()
		return q, nil, err
	}
	return q, leave, nil
}

// elements returns the number of elements in the lists and objects of a text in JSON, or more.
func elements(text []byte) (n int64) {
	quoted, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == ',' || c == '[' || c == '{':
			n++
		}
	}
	return n
}

// addDocument adds the values of the document to the values of a request.
func (h *handler) addDocument(ctx context.Context, q *wire.Wait, values body.Body) error {
	items, _, leave, err := h.itemsOf(ctx, values)
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
