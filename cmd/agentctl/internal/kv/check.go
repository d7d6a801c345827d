package kv

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// validateTimeout bounds the question to the agent whether it would refuse a value: an agent that
// does not answer must not hold up an edit. One on a busy machine takes seconds.
const validateTimeout = 10 * time.Second

// mostChecked is how many values one request checks: the agent bounds the size of a request.
const mostChecked = 256

// check returns the reason why an agent would refuse value under key, or nil.
func check(ctx context.Context, s *session.Session, key string, value []byte) error {
	c := newChecking([]kvdbsync.Pair{{Key: key, Value: value}})
	err := c.ask(ctx, s, func() {})
	return cmp.Or(err, c.wrong[0])
}

// A checking finds the pairs that an agent would refuse. They are written one after the other, so a
// later value of a key replaces an earlier one, and they may belong to several agents.
type checking struct {
	pairs []kvdbsync.Pair
	wrong []error // why an agent would refuse the pair, by index; nil: it would not
	// The refusals of an agent, by index; nil: no agent has refused it.
	refused []*wire.Invalid
	last    map[string]int // the index of the last value of a key
	// The pairs that the agent checks, as one request each: those of one label, because it compares
	// the values of a request with each other; and of a key the last value, for the same reason.
	requests [][]int
}

// newChecking checks pairs against their models, as every agent does, and divides them into requests.
func newChecking(pairs []kvdbsync.Pair) *checking {
	c := &checking{pairs: pairs, wrong: make([]error, len(pairs)), refused: make([]*wire.Invalid, len(pairs)), last: map[string]int{}}
	for i, p := range pairs {
		c.last[p.Key] = i
	}
	open := map[string]int{} // the index of the request of a label that has room
	for i, p := range pairs {
		// A message beside an error has control characters only, which an agent may also
		// refuse; it says so itself.
		message, err := models.BuiltIn().Decode(shortKey(p), p.Value)
		c.wrong[i] = err
		isForeign := errors.Is(err, models.ErrNoModel) // perhaps the agent's program has this model
		if err != nil && message == nil && !isForeign || !json.Valid(p.Value) || c.last[p.Key] != i {
			continue
		}
		label := strings.TrimSuffix(p.Key, shortKey(p))
		at, begun := open[label]
		if !begun || len(c.requests[at]) == mostChecked {
			at = len(c.requests)
			open[label] = at
			c.requests = append(c.requests, nil)
		}
		c.requests[at] = append(c.requests[at], i)
	}
	return c
}

// shortKey returns the key that the agent validates: without its own prefix.
func shortKey(p kvdbsync.Pair) string { return cmp.Or(session.ShortKey(p.Key), p.Key) }

// ask asks the agent, which also knows its descriptors and their limits. If no agent answers, the check
// of newChecking alone decides. It calls done after each request.
func (c *checking) ask(ctx context.Context, s *session.Session, done func()) error {
	for _, request := range c.requests {
		var question []map[string]any
		for _, i := range request {
			question = append(question, map[string]any{"key": shortKey(c.pairs[i]), "value": json.RawMessage(c.pairs[i].Value)})
		}
		invalid, answered, err := refusals(ctx, s, question)
		if err != nil {
			return err
		}
		done()
		for _, i := range request {
			if answered {
				refusal := invalid[shortKey(c.pairs[i])]
				c.refused[i], c.wrong[i] = refusal, judged(c.wrong[i], refusal)
			}
		}
	}
	// If the agent has the model of the last value, it has that of the earlier ones.
	for i, p := range c.pairs {
		if errors.Is(c.wrong[i], models.ErrNoModel) && c.wrong[c.last[p.Key]] == nil {
			c.wrong[i] = nil
		}
	}
	return nil
}

// judged returns the reason why an agent would refuse a value: its own one, if there is any, or
// the one of the first check.
func judged(first error, refusal *wire.Invalid) error {
	switch {
	case refusal != nil && refusal.Error != "":
		return errors.New(show.Remote(refusal.Error))
	case errors.Is(first, models.ErrNoModel):
		return nil // the agent has it
	}
	return first
}

// refusals asks the agent which of some values it would refuse, and returns the reasons by key. Answered
// is false if no agent answers.
func refusals(ctx context.Context, s *session.Session, question []map[string]any) (reasons map[string]*wire.Invalid, answered bool, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, false, err
	}
	end, err := s.ReachStoreAgent(ctx)
	if err != nil {
		return nil, false, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, validateTimeout)
	defer cancel()
	var invalid []wire.Invalid
	if err := s.Request(ctx, http.MethodPost, "/scheduler/validate", nil, body, &invalid); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(s.Err, "warning: the agent has not answered within %v; only the models have checked the values\n", validateTimeout)
		}
		return nil, false, nil //nolint:nilerr // the check of the models has to do
	}
	reasons = map[string]*wire.Invalid{}
	for i, v := range invalid {
		reasons[v.Key] = &invalid[i]
	}
	return reasons, true, nil
}
