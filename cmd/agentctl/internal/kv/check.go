package kv

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// validateTimeout bounds the question to the agent whether it would refuse a value. It is
// short, because an agent that does not answer must not hold up an edit.
const validateTimeout = 2 * time.Second

// check returns the reason why an agent would refuse value under key, or nil. First it
// checks the value against its model, as every agent does. Then it asks the agent, which
// also knows its descriptors and their limits. If no agent answers, the first check alone
// decides.
func check(ctx context.Context, s *session.Session, key string, value []byte) error {
	// The agent validates keys without its own prefix.
	_, short, found := strings.Cut(strings.TrimPrefix(key, session.AllAgents), "/")
	if !found {
		short = key
	}
	// A message beside an error has control characters only, which an agent may also
	// refuse; it says so itself.
	message, wrong := models.BuiltIn().Decode(short, value)
	foreign := errors.Is(wrong, models.ErrNoModel) // perhaps the agent's program has this model
	if wrong != nil && message == nil && !foreign {
		return wrong
	}
	body, err := json.Marshal([]map[string]any{{"key": short, "value": json.RawMessage(value)}})
	if err != nil {
		return cmp.Or(wrong, err)
	}
	end, err := s.ReachStoreAgent(ctx)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, validateTimeout)
	defer cancel()
	var invalid []wire.Invalid
	err = s.Request(ctx, http.MethodPost, "/scheduler/validate", nil, body, &invalid)
	switch {
	case err == nil && len(invalid) == 0 && foreign:
		return nil
	case err != nil || len(invalid) == 0:
		return wrong
	}
	return errors.New(show.Remote(invalid[0].Error))
}
