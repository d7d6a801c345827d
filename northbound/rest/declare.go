package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/sender"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/export"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/internal/trials"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// A Declarer changes the values that clients declare. *orchestrator.Orchestrator
// implements it.
type Declarer interface {
	Declare(ctx context.Context, q orchestrator.Request) (*scheduler.Record, error)
}

// DefaultLayer is the data source of clients that name none. gRPC has the same, so a
// client of both changes one configuration.
const DefaultLayer = "grpc"

// errNoDeclarer is the answer of an agent whose clients cannot declare values.
var errNoDeclarer = errors.New("this agent takes no values from clients")

// putConfiguration declares the values of the body, as one transaction. Other values of
// the layer stay, unless the argument replace is given.
func (h *handler) putConfiguration(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
	replace, err := q.Flag("replace")
	if err != nil {
		return reply.BadRequest(err)
	}
	items, leave, err := h.bodyOf(w, r)
	if err != nil {
		return err
	}
	defer leave()
	var values []orchestrator.Declared
	var invalid []wire.Invalid
	lines := map[string]int{}
	for _, it := range items {
		key := h.short(it.Key)
		m, err := h.declarable(it, key)
		if first, twice := lines[key]; err == nil && twice {
			err = fmt.Errorf("the key is already in line %d: expected it once", first)
		}
		if err != nil {
			invalid = append(invalid, wire.Invalid{Key: key, Line: lineOf(it, err), Error: messageOnly(err), Fields: models.Fields(err)})
			continue
		}
		lines[key] = it.Line
		values = append(values, orchestrator.Declared{Key: key, Message: m})
	}
	if len(invalid) > 0 {
		return unreadable(invalid)
	}
	most, err := trials.Time(q)
	if err != nil {
		return err
	}
	request := orchestrator.Request{Values: values, Replace: replace}
	if request.If, err = unlessChanged(q, values); err != nil {
		return reply.BadRequest(err)
	}
	return h.declare(w, r, q, request, most)
}

// errChanged refuses a value that somebody else has changed since its author has read it.
var errChanged = errors.New("the value has changed")

// unlessChanged returns the condition of the argument version; nil: there is none.
func unlessChanged(q endpoint.Query, values []orchestrator.Declared) (func(has func(string) proto.Message) error, error) {
	version, err := q.One("version")
	if err != nil || version == "" {
		return nil, err
	}
	if len(values) != 1 {
		return nil, fmt.Errorf("version: the document has %d values: expected one, which has this version", len(values))
	}
	key := values[0].Key
	return func(has func(string) proto.Message) error {
		if m := has(key); m == nil || export.Version(m) != version {
			return fmt.Errorf("%s: %w since it had the version %s", key, errChanged, version)
		}
		return nil
	}, nil
}

// declarable returns the message of an item of a body, or nil for one that asks for
// removal. The error is why it cannot be declared.
func (h *handler) declarable(it structured.Item, key string) (proto.Message, error) {
	_, err := h.own(key)
	switch {
	case it.Err != nil:
		return nil, it.Err
	case err != nil:
		return nil, err
	case it.Value == nil:
		return nil, nil
	}
	m, err := h.sched.Models().Decode(key, it.Value)
	if err != nil {
		return nil, err
	}
	return m, cmp.Or(models.CheckSecrets(m), h.valid(key, m))
}

// own returns a key without the prefix of this agent. A key of another agent is an error.
func (h *handler) own(key string) (short string, err error) {
	short = h.short(key)
	if strings.HasPrefix(short, "/") {
		err = fmt.Errorf("the key does not belong to this agent: expected one that begins with config/ or /vnf-agent/%s/config/", h.Label)
	}
	return short, err
}

// deleteConfiguration removes values from the layer: those of the body, those of the
// argument key, or with all=1 every value.
func (h *handler) deleteConfiguration(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
	all, err := q.Boolean("all")
	if err != nil {
		return reply.BadRequest(err)
	}
	request := orchestrator.Request{Replace: all}
	for _, given := range q.Values["key"] {
		key, err := h.own(given)
		if err != nil {
			return reply.BadRequest(err)
		}
		request.Values = append(request.Values, orchestrator.Declared{Key: key})
	}
	if !all && request.Values == nil {
		items, leave, err := h.bodyOf(w, r)
		if err != nil {
			return err
		}
		defer leave()
		var invalid []wire.Invalid
		for _, it := range items {
			key, err := h.own(it.Key)
			if it.Key == "" { // its content is wrong, but only its key matters here
				err = it.Err
			}
			if err != nil {
				invalid = append(invalid, wire.Invalid{Key: key, Line: lineOf(it, err), Error: messageOnly(err), Fields: models.Fields(err)})
				continue
			}
			request.Values = append(request.Values, orchestrator.Declared{Key: key})
		}
		if len(invalid) > 0 {
			return unreadable(invalid)
		}
	}
	return h.declare(w, r, q, request, 0)
}

// declare sends a request to the orchestrator and answers {}, or what failed. If most is not 0,
// the change is a trial that lasts so long.
func (h *handler) declare(w http.ResponseWriter, r *http.Request, q endpoint.Query, request orchestrator.Request, most time.Duration) error {
	if h.Declarer == nil {
		return reply.NotFound(errNoDeclarer)
	}
	var err error
	if request.Layer, err = q.One("datasrc"); err != nil {
		return reply.BadRequest(err)
	}
	request.Layer = cmp.Or(request.Layer, DefaultLayer)
	if request.Revert, err = q.Flag("revert"); err != nil {
		return reply.BadRequest(err)
	}
	request.By = sender.Of(r.Context())
	if most != 0 {
		err = h.trials().Try(r.Context(), request, most)
	} else {
		_, err = h.Declarer.Declare(r.Context(), request)
	}
	failed, partly := errors.AsType[*scheduler.TxnError](err)
	switch {
	case errors.Is(err, errChanged):
		return reply.Status(http.StatusPreconditionFailed, err)
	case errors.Is(err, orchestrator.ErrLayerName), errors.Is(err, orchestrator.ErrTooManyLayers):
		return reply.BadRequest(err)
	case partly:
		return reply.Detailed(http.StatusInternalServerError, err, failures(failed))
	case err != nil:
		return trials.WithStatus(err)
	}
	return reply.JSON(w, wire.Nothing{})
}

// failures converts the errors of a transaction. A value that failed several times in
// it has the same error once.
func failures(of *scheduler.TxnError) []wire.Invalid {
	type failure struct{ key, text string }
	var out []wire.Invalid
	known, more := map[failure]bool{}, 0
	for _, f := range of.Failed {
		this := failure{f.Key, f.Err.Error()}
		if known[this] {
			continue
		}
		known[this] = true
		if len(out) == maxInvalid {
			more++
			continue
		}
		out = append(out, wire.Invalid{Key: f.Key, Error: this.text, Fields: models.Fields(f.Err)})
	}
	if more > 0 {
		out = append(out, wire.Invalid{Error: fmt.Sprintf("and %d more failed", more)})
	}
	return out
}

// unreadable is the error of a body with values that cannot be declared. Nothing of such a
// body is declared: its author meant something else.
func unreadable(invalid []wire.Invalid) error {
	first := invalid[0]
	text := first.Error
	if first.Key != "" {
		text = first.Key + ": " + text
	}
	if first.Line > 0 {
		text = fmt.Sprintf("line %d: %s", first.Line, text)
	}
	if n := len(invalid); n > 1 {
		text += fmt.Sprintf("; and %d more", n-1)
	}
	return reply.Detailed(http.StatusBadRequest, errors.New(text), firstInvalid(invalid))
}

// firstInvalid returns the invalid values that an answer names; one more counts the others.
func firstInvalid(all []wire.Invalid) []wire.Invalid {
	more := len(all) - maxInvalid
	if more <= 0 {
		return all
	}
	return append(slices.Clip(all[:maxInvalid]), wire.Invalid{Error: fmt.Sprintf("and %d more are invalid", more)})
}
