package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/northbound/rest/internal/body"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/internal/turns"
)

// bodyOf reads the values in the body of a request. Errors have status 400, or 413
// if the body exceeds Options.MaxBody. The memory for reading and for processing the
// values counts until leave is called. Then the client may take its time to read the
// answer.
func (h *handler) bodyOf(w http.ResponseWriter, r *http.Request) (items []structured.Item, leave func(), err error) {
	text, err := h.textOf(w, r)
	if err != nil {
		return nil, nil, err
	}
	items, _, leave, err = h.itemsOf(r.Context(), body.Of(text))
	return items, leave, err
}

// textKey is the key of a received body in the context of a request: a *[]byte.
type textKey struct{}

// textOf returns the body of a request, once.
func (h *handler) textOf(w http.ResponseWriter, r *http.Request) (text []byte, err error) {
	if received, ok := r.Context().Value(textKey{}).(*[]byte); ok {
		text, *received = *received, nil // its memory is free after the last use
		return text, nil
	}
	return h.receive(w, r, nil)
}

// receive reads the body of a request. A large one waits for its turn.
func (h *handler) receive(w http.ResponseWriter, r *http.Request, turn *turns.Body) ([]byte, error) {
	more := func() error { return turn.Take(r.Context()) }
	text, err := body.Read(http.MaxBytesReader(w, r.Body, h.MaxBody), min(r.ContentLength, h.MaxBody), h.MaxBody, more)
	if errors.Is(err, turns.ErrBusy) {
		return nil, err
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, reply.Status(http.StatusRequestEntityTooLarge, fmt.Errorf("the body is too large; the maximum is %d bytes", tooLarge.Limit))
	}
	if err != nil {
		return nil, reply.BadRequest(fmt.Errorf("reading the body: %w", err))
	}
	return text, nil
}

// needOfBody bounds the memory of a plan or a check by that of the body. Short values take twenty
// times their text, so it is less than the largest body could need.
const needOfBody = 3

// itemsToTry is itemsOf for values that are only planned or checked; see affordable.
func (h *handler) itemsToTry(ctx context.Context, text []byte) (items []structured.Item, ignored []error, leave func(), err error) {
	values := body.Of(text)
	if err := h.affordable(values); err != nil {
		return nil, nil, nil, err
	}
	return h.itemsOf(ctx, values)
}

// affordable refuses values that need more than Options.maxNeed, with status 413.
func (h *handler) affordable(values body.Body) error {
	need := values.Cost()
	if h.maxNeed == 0 || need <= h.maxNeed {
		return nil
	}
	return reply.Status(http.StatusRequestEntityTooLarge, fmt.Errorf(
		"the values need about %d MB of memory; the maximum is %d MB, %d times max-body-bytes in http.conf: split them, or use the agent's socket, which has no such maximum",
		need>>20, h.maxNeed>>20, needOfBody))
}

// itemsOf returns the values in a body, and its parts without effect; see bodyOf.
func (h *handler) itemsOf(ctx context.Context, values body.Body) (items []structured.Item, ignored []error, leave func(), err error) {
	leave, err = h.Memory.Enter(ctx, values.Cost())
	if err != nil {
		return nil, nil, nil, err
	}
	items, ignored, err = values.Items(ctx, structured.For(h.sched.Models()))
	if err == nil {
		return items, ignored, leave, nil
	}
	leave()
	if ctx.Err() != nil {
		return nil, nil, nil, err
	}
	return nil, nil, nil, reply.BadRequest(err)
}
