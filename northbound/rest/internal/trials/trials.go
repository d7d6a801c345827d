// Package trials has the paths of changes that are taken back unless somebody confirms them.
// Package orchestrator/trial makes them; PUT /configuration begins one.
package trials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/orchestrator/trial"
)

// A Keeper keeps trials. *trial.Trials implements it.
type Keeper interface {
	Try(ctx context.Context, q orchestrator.Request, most time.Duration) (trial.Trial, error)
	Confirm(layer string) (trial.Trial, error)
	Cancel(ctx context.Context, layer string) (trial.Trial, error)
	List() []trial.Trial
}

// Trials serves the trials of a Keeper. The zero value answers 404.
type Trials struct {
	Keeper Keeper
	// Default is the data source of requests that name none.
	Default string
}

// errNone is the answer of an agent that cannot declare values for a time.
var errNone = errors.New("this agent declares no values on trial")

// Endpoints returns the paths in the order of the index.
func (t Trials) Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		endpoint.Get("/configuration/trials", endpoint.Read, "", "changes on trial, which are taken back unless they are confirmed", t.list).Answers([]wire.Trial{}),
		endpoint.Get("/configuration/confirm", endpoint.Write, "datasrc=", "make the change on trial permanent", t.confirm).By(http.MethodPost).Answers(wire.Trial{}),
		endpoint.Get("/configuration/cancel", endpoint.Write, "datasrc=", "take the change on trial back at once", t.cancel).By(http.MethodPost).Answers(wire.Trial{}),
	}
}

// Time returns the argument trial of a request: for how long its change is tried; 0: it is no trial.
func Time(q endpoint.Query) (time.Duration, error) {
	text, err := q.One("trial")
	if err != nil || text == "" {
		return 0, reply.BadRequest(err)
	}
	most, err := time.ParseDuration(text)
	if err == nil && (most < trial.Shortest || most > trial.Longest) {
		err = trial.ErrTime
	}
	if err != nil {
		return 0, reply.BadRequest(fmt.Errorf("argument trial=%q: expected a duration from %v to %v, such as 60s", text, trial.Shortest, trial.Longest))
	}
	return most, nil
}

// Try begins a trial. It returns only the errors of the change itself unchanged.
func (t Trials) Try(ctx context.Context, q orchestrator.Request, most time.Duration) error {
	if t.Keeper == nil {
		return reply.NotFound(errNone)
	}
	_, err := t.Keeper.Try(ctx, q, most)
	return WithStatus(err)
}

// WithStatus returns an error of package trial with its status. Others are unchanged.
func WithStatus(err error) error {
	for _, conflict := range []error{trial.ErrOnTrial, trial.ErrBusy, trial.ErrNoTrial} {
		if errors.Is(err, conflict) {
			return reply.Status(http.StatusConflict, err)
		}
	}
	return err
}

// list answers all trials.
func (t Trials) list(w http.ResponseWriter, _ *http.Request, _ endpoint.Query) error {
	if t.Keeper == nil {
		return reply.NotFound(errNone)
	}
	return reply.Array(w, reply.Mapped(t.Keeper.List(), shown))
}

// confirm answers the trial that is now permanent.
func (t Trials) confirm(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	return t.end(w, q, func(layer string) (trial.Trial, error) { return t.Keeper.Confirm(layer) })
}

// cancel answers the trial that was taken back.
func (t Trials) cancel(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
	return t.end(w, q, func(layer string) (trial.Trial, error) { return t.Keeper.Cancel(r.Context(), layer) })
}

// end ends the trial of a data source.
func (t Trials) end(w http.ResponseWriter, q endpoint.Query, by func(layer string) (trial.Trial, error)) error {
	if t.Keeper == nil {
		return reply.NotFound(errNone)
	}
	layer, err := q.One("datasrc")
	if err != nil {
		return reply.BadRequest(err)
	}
	ended, err := by(cmp.Or(layer, t.Default))
	if err != nil {
		return WithStatus(err)
	}
	return reply.JSON(w, shown(ended))
}

// shown converts a trial.
func shown(t trial.Trial) wire.Trial {
	return wire.Trial{Source: t.Layer, Begun: t.Begun, Deadline: t.Deadline, Keys: t.Keys}
}
