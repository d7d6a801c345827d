package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// allAgents is what the keys of every agent begin with.
const allAgents = "/vnf-agent/"

// isWhole says that a key names its agent itself.
func isWhole(key string) bool { return strings.HasPrefix(key, allAgents) }

// wholeKey completes a short key, "config/...", with the label of the agent: that of the
// one behind the socket, else what the settings say. A label that somebody has said and
// that is not that agent's is an error, since nobody would read the key.
func (a *app) wholeKey(ctx context.Context, s kvdbsync.Store, key string) (string, error) {
	if isWhole(key) {
		return key, nil
	}
	label := a.Label
	if behind, ok := s.(*kvdb.Client); ok {
		own, err := behind.Label(ctx)
		switch {
		case err != nil:
			return "", err
		case own == "": // an older agent
		case a.labelled && own != label:
			return "", fmt.Errorf("the agent at %s has the label %s, and --service-label or MICROSERVICE_LABEL says %s: expected the same label, or the whole key %s",
				a.Socket, own, label, completed(key, label))
		default:
			label = own
		}
	}
	return completed(key, label), nil
}

func completed(key, label string) string {
	return allAgents + label + "/" + strings.TrimPrefix(key, "/")
}

// wholePrefix completes a short prefix, "vpp1/config/...": it begins with a label.
func wholePrefix(prefix string) string {
	if isWhole(prefix) {
		return prefix
	}
	return allAgents + strings.TrimPrefix(prefix, "/")
}
