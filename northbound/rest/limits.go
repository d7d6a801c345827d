package rest

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/deadline"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/internal/turns"
)

const (
	// maxExpensive is the number of requests that are served at once although they
	// need much memory or time. Each can take tens of megabytes until its client has
	// read the answer.
	maxExpensive = 2
	// maxReading is the number of requests among them that read the actual state back. The
	// system may not answer them. The other slots remain for requests that the agent itself
	// can answer.
	maxReading = 1
	// expensiveWait is the maximum time that such a request waits for a slot.
	expensiveWait = 30 * time.Second
	// maxUnread is for how long the client of such an answer may read nothing of it.
	maxUnread = 10 * time.Second
)

// bytesOfAnswer is about the memory, in bytes, that an expensive answer takes while it is
// made and written: the text of the largest transaction or value in it.
const bytesOfAnswer = 8 << 20

// limited returns the endpoint, which waits for a slot first if it is expensive.
func (h *handler) limited(e endpoint.Endpoint) endpoint.Endpoint {
	if !e.Expensive {
		return e
	}
	serve := e.Serve
	e.Serve = func(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
		until := time.Now().Add(expensiveWait)
		if e.ReadsBack {
			if err := turns.Take(r.Context(), h.reading, until); err != nil {
				return err
			}
			defer func() { <-h.reading }()
		}
		if e.Body != "" { // bodyOf knows the need
			turn := &turns.Body{Slots: h.largeBodies, Until: until}
			defer turn.Leave()
			// A client that stops sending must not hold a slot.
			text, err := h.receive(w, r, turn)
			if err != nil {
				return err
			}
			r = r.WithContext(context.WithValue(r.Context(), textKey{}, &text))
			return h.inTurn(w, r, 0, until, func(w http.ResponseWriter) error { return serve(w, r, q) })
		}
		return h.inTurn(w, r, bytesOfAnswer, until, func(w http.ResponseWriter) error { return serve(w, r, q) })
	}
	return e
}

// inTurn serves an expensive request when there is a slot and so much memory for it.
func (h *handler) inTurn(w http.ResponseWriter, r *http.Request, bytes int64, until time.Time, serve func(http.ResponseWriter) error) error {
	if err := turns.Take(r.Context(), h.turns, until); err != nil {
		return err
	}
	defer func() { <-h.turns }()
	ctx, cancel := context.WithDeadline(r.Context(), until)
	defer cancel()
	leave, err := h.Memory.Enter(ctx, bytes)
	if err != nil {
		return cmp.Or(r.Context().Err(), reply.Status(http.StatusServiceUnavailable, turns.ErrBusy))
	}
	defer leave()
	return serve(deadline.Unread(w, h.answerTime, maxUnread))
}
