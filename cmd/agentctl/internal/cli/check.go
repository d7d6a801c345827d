package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// patience is how long the agent may take to say what it would refuse.
const patience = 2 * time.Second

// check tells why an agent would refuse value under key: by what any of them would, and
// by what the one that can be reached says. Where there is none, that says nothing.
func (a *app) check(ctx context.Context, key string, value []byte) error {
	_, short, _ := strings.Cut(strings.TrimPrefix(key, allAgents), "/")
	message, wrong := models.Decode(short, value)
	if wrong != nil && message == nil {
		return wrong
	}
	body, err := json.Marshal([]map[string]any{{"key": short, "value": json.RawMessage(value)}})
	if err != nil {
		return err
	}
	if a.at, err = a.validator(); err != nil {
		return err
	}
	defer a.at.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var invalid []wire.Invalid
	if a.ask(ctx, http.MethodPost, "/scheduler/validate", nil, body, &invalid) != nil || len(invalid) == 0 {
		return wrong
	}
	return errors.New(remote(invalid[0].Error))
}

// validator is the agent that the store belongs to, or whichever the settings name.
func (a *app) validator() (*agentAt, error) {
	if a.Store != "etcd" {
		return a.agentBehindSocket(), nil
	}
	return a.agent()
}
