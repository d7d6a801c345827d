package kv

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// validateTimeout bounds the question to the agent whether it would refuse a value. It is
// short, because an agent that does not answer must not hold up an edit.
const validateTimeout = 2 * time.Second

// check returns the reason why an agent would refuse value under key, or nil.
func check(ctx context.Context, s *session.Session, key string, value []byte) error {
	wrong, err := checkAll(ctx, s, []kvdbsync.Pair{{Key: key, Value: value}})
	return cmp.Or(err, wrong[0])
}

// checkAll returns the reasons why an agent would refuse pairs, each nil if there is none. First
// it checks values against their models, as every agent does. Then it asks the agent, which also
// knows its descriptors and their limits. If no agent answers, the first check alone decides. The
// pairs are one request, so they are bounded by the size that the agent accepts.
func checkAll(ctx context.Context, s *session.Session, pairs []kvdbsync.Pair) (wrong []error, err error) {
	wrong = make([]error, len(pairs))
	asked := map[string][]int{} // the pairs that the agent decides, by key
	var question []map[string]any
	for i, p := range pairs {
		short := cmp.Or(session.ShortKey(p.Key), p.Key) // the agent validates keys without its own prefix
		// A message beside an error has control characters only, which an agent may also
		// refuse; it says so itself.
		message, err := models.BuiltIn().Decode(short, p.Value)
		wrong[i] = err
		isForeign := errors.Is(err, models.ErrNoModel) // perhaps the agent's program has this model
		if err != nil && message == nil && !isForeign || !json.Valid(p.Value) {
			continue
		}
		asked[short] = append(asked[short], i)
		question = append(question, map[string]any{"key": short, "value": json.RawMessage(p.Value)})
	}
	if len(question) == 0 {
		return wrong, nil
	}
	invalid, answered, err := ask(ctx, s, question)
	if err != nil || !answered {
		return wrong, err
	}
	for key, all := range asked {
		for _, i := range all {
			if errors.Is(wrong[i], models.ErrNoModel) {
				wrong[i] = nil // the agent has it
			}
			if reason, ok := invalid[key]; ok {
				wrong[i] = errors.New(show.Remote(reason))
			}
		}
	}
	return wrong, nil
}

// ask asks the agent which of some values it would refuse, and returns the reasons by key. Answered
// is false if no agent answers.
func ask(ctx context.Context, s *session.Session, question []map[string]any) (reasons map[string]string, answered bool, err error) {
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
		return nil, false, nil //nolint:nilerr // the check of the models has to do
	}
	reasons = map[string]string{}
	for _, v := range invalid {
		reasons[v.Key] = v.Error
	}
	return reasons, true, nil
}
