package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/deadline"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
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

// errBusy is the answer after expensiveWait, with status 503.
var errBusy = errors.New("too many requests of this kind at once; try again later")

// limited returns the endpoint, which waits for a slot first if it is expensive.
func (h *handler) limited(e endpoint.Endpoint) endpoint.Endpoint {
	if !e.Expensive {
		return e
	}
	serve := e.Serve
	e.Serve = func(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
		until := time.Now().Add(expensiveWait)
		if e.ReadsBack {
			if err := takeTurn(r.Context(), h.reading, until); err != nil {
				return err
			}
			defer func() { <-h.reading }()
		}
		if e.Body != "" { // bodyOf knows the need
			turn := &bodyTurn{turns: h.largeBodies, until: until}
			defer turn.leave()
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
	if err := takeTurn(r.Context(), h.turns, until); err != nil {
		return err
	}
	defer func() { <-h.turns }()
	ctx, cancel := context.WithDeadline(r.Context(), until)
	defer cancel()
	leave, err := h.Memory.Enter(ctx, bytes)
	if err != nil {
		return cmp.Or(r.Context().Err(), reply.Status(http.StatusServiceUnavailable, errBusy))
	}
	defer leave()
	return serve(deadline.Unread(w, h.answerTime, maxUnread))
}

// A bodyTurn is the turn of a request to have a large body in memory, until its answer. Of those that change
// or check values, one has it at a time.
type bodyTurn struct {
	turns chan struct{}
	until time.Time // when the request gives up
	held  bool
}

// take waits for the turn. A nil bodyTurn needs none.
func (t *bodyTurn) take(ctx context.Context) error {
	if t == nil || t.held {
		return nil
	}
	err := takeTurn(ctx, t.turns, t.until)
	t.held = err == nil
	return err
}

// leave ends the turn, if it was taken.
func (t *bodyTurn) leave() {
	if t.held {
		<-t.turns
	}
}

// takeTurn waits for a slot until the given time. The caller releases it.
func takeTurn(ctx context.Context, turns chan<- struct{}, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case turns <- struct{}{}:
		return nil
	case <-timer.C:
		return reply.Status(http.StatusServiceUnavailable, errBusy)
	case <-ctx.Done():
		return ctx.Err()
	}
}
