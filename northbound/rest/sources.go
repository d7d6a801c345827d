package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/records"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// Sources reports the sources of declared values. *orchestrator.Orchestrator
// implements it.
type Sources interface {
	Health() []orchestrator.Health
	// Relist asks each source to read its store again; Health.Confirmed tells when it has.
	Relist()
	Declarations(ctx context.Context, key string) ([]orchestrator.Declaration, error)
	DeclarationsUnder(ctx context.Context, prefix string) ([]orchestrator.Declaration, error)
	// Forget removes the values of a source that is not configured any more.
	Forget(ctx context.Context, name string) (*scheduler.Record, error)
}

// forgetSource removes the values of a source that held keys at the last run and is not configured now,
// and answers the transaction; {}: it needed none. Status 404: there is no such source.
func (h *handler) forgetSource(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	if h.Sources == nil {
		return reply.NotFound(errNoSources)
	}
	record, err := h.Sources.Forget(r.Context(), r.PathValue("source"))
	switch {
	case errors.Is(err, orchestrator.ErrNoSource):
		return reply.NotFound(err)
	case record == nil && err != nil:
		return err
	case record == nil:
		return reply.JSON(w, wire.Nothing{})
	}
	return reply.One(w, records.Of(record)) // it names the operations that failed; they are retried
}

// errNoSources is the answer of an agent without sources.
var errNoSources = errors.New("this agent has no sources")

// sources answers the state of the sources or, for keys, the sources that hold them. Those of a prefix may be
// all values, so this takes turns.
func (h *handler) sources(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
	by, value, err := q.AtMostOne("key", "key-prefix")
	if err != nil {
		return reply.BadRequest(err)
	}
	if h.Sources == nil {
		return reply.NotFound(errNoSources)
	}
	read := h.Sources.Declarations
	switch by {
	case "":
		return reply.Array(w, reply.Mapped(h.Sources.Health(), sourceOf))
	case "key-prefix":
		read = h.Sources.DeclarationsUnder
	}
	answer := func(w http.ResponseWriter) error {
		declarations, err := read(r.Context(), h.short(value))
		if err != nil {
			return err
		}
		return reply.Array(w, reply.Mapped(declarations, declarationOf))
	}
	if by == "key-prefix" {
		return h.inTurn(w, r, bytesOfAnswer, time.Now().Add(expensiveWait), answer)
	}
	return answer(w)
}

// sourceOf converts the state of a source.
func sourceOf(h orchestrator.Health) wire.Source {
	state := h.State.String()
	if h.Unconfigured {
		state = wire.NotConfigured
	}
	return wire.Source{
		Name: h.Source, Priority: h.Priority, State: state, Since: h.Since, Complete: h.Complete, Revision: h.Rev, Keys: h.Keys, Listed: h.Listed,
		Refused: h.Refused, Remembered: h.Remembered, Doubted: h.Doubted, Problems: h.Problems, Faults: h.Faults,
		Error: reply.ErrorText(h.Err), Failures: h.Failures, LastError: reply.ErrorText(h.LastErr), LastErrorAt: h.LastErrAt,
		Waiting: h.Waiting, Lag: h.Lag,
	}
}

// declarationOf converts the declaration of a key by one source.
func declarationOf(c orchestrator.Declaration) wire.Declaration {
	return wire.Declaration{
		Key: c.Key, Source: c.Source, Writer: c.Writer, Priority: c.Priority, State: c.State(), Wins: c.Effective,
		Remembered: c.Remembered, Doubted: c.Doubted, Error: reply.ErrorText(c.Err),
	}
}
