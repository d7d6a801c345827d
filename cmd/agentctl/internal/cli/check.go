package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

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
func (a *app) check(ctx context.Context, key string, value []byte) error {
	// The agent validates keys without its own prefix.
	_, short, found := strings.Cut(strings.TrimPrefix(key, allAgents), "/")
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
	if a.target, err = a.validator(ctx); err != nil {
		return err
	}
	defer a.target.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, validateTimeout)
	defer cancel()
	var invalid []wire.Invalid
	err = a.request(ctx, http.MethodPost, "/scheduler/validate", nil, body, &invalid)
	switch {
	case err == nil && len(invalid) == 0 && foreign:
		return nil
	case err != nil || len(invalid) == 0:
		return wrong
	}
	return errors.New(remote(invalid[0].Error))
}

// validator returns a client for the agent that uses the store, or the agent that the
// settings name if the store is etcd.
func (a *app) validator(ctx context.Context) (*agentClient, error) {
	if a.ofAgent {
		return a.agentBySocket(), nil
	}
	return a.agent(ctx)
}
