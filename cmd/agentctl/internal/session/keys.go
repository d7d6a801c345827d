package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/internal/nearest"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// AllAgents is the common prefix of the keys of all agents.
const AllAgents = "/vnf-agent/"

// configFolder is the only folder of a label that the agent reads.
const configFolder = "config"

// IsRead reports whether an agent reads a complete key: it is below config/ of a label.
func IsRead(key string) bool { return strings.HasPrefix(ShortKey(key), configFolder+"/") }

// IsFullKey reports whether a key contains the label of its agent.
func IsFullKey(key string) bool { return strings.HasPrefix(key, AllAgents) }

// ShortKey returns a complete key without the prefix of its agent. Other keys are unchanged.
func ShortKey(key string) string {
	if !IsFullKey(key) {
		return key
	}
	_, short, _ := strings.Cut(strings.TrimPrefix(key, AllAgents), "/")
	return short
}

// LabelOf returns the label of the agent whose key this is; false: it is not complete.
func LabelOf(key string) (label string, complete bool) {
	if !IsFullKey(key) {
		return "", false
	}
	label, _, _ = strings.Cut(strings.TrimPrefix(key, AllAgents), "/")
	return label, true
}

// IsKey reports whether a text has the form of a key: it is complete, or begins with a folder
// of an agent. Other texts on a command line are names.
func IsKey(text string) bool {
	first, _, below := strings.Cut(strings.TrimPrefix(text, "/"), "/")
	return IsFullKey(text) || below && slices.Contains(folders(), first)
}

// folders are the first elements of the keys of one agent, behind its label.
func folders() []string {
	return []string{configFolder, "config-status", "check", "status", "owner", "vpp", "linux", "metrics"}
}

// FullKey completes a short key or prefix. One that begins with a folder of an agent, such as
// "config/", is completed with the label: behind a socket that of the agent there, otherwise the
// configured one. Any other begins with a label, "vpp2/config/". A configured label that
// contradicts the agent behind the socket is an error: no agent would read the key.
func (s *Session) FullKey(ctx context.Context, store kvdbsync.Store, key string) (string, error) {
	if full := "/" + strings.TrimPrefix(key, "/"); IsFullKey(full) { // also without the first slash
		return full, nil
	}
	if first, _, below := strings.Cut(strings.TrimPrefix(key, "/"), "/"); !slices.Contains(folders(), first) {
		if similar := nearest.Word(first, []string{configFolder}); below && similar != "" {
			return "", Usagef("%q is no folder of an agent: did you mean %q? If it is a label, write the full key, %s%s",
				first+"/", similar+"/", AllAgents, strings.TrimPrefix(key, "/"))
		}
		return AllAgents + strings.TrimPrefix(key, "/"), nil
	}
	if s.storeLabel != "" {
		return withLabel(key, s.storeLabel), nil
	}
	// Without a socket nobody can say which agents use the store.
	label := s.Label
	if behind, ok := store.(*kvdb.Client); ok {
		own, err := behind.Label(ctx)
		switch {
		case err != nil:
			return "", err
		case own == "": // agents of earlier releases do not answer their label
		case s.labelGiven && own != label:
			return "", fmt.Errorf("the agent at %s has the label %s, but --service-label or MICROSERVICE_LABEL is %s: expected the same label, or the full key %s",
				s.Socket, own, label, withLabel(key, label))
		default:
			label = own
		}
	}
	s.storeLabel = label
	return withLabel(key, label), nil
}

// GivenLabel returns the label that the user has chosen; empty: none.
func (s *Session) GivenLabel() string {
	if !s.labelGiven {
		return ""
	}
	return s.Label
}

// AgentLabel returns the label that the agent has named in an answer; empty: none has.
func (s *Session) AgentLabel() string { return s.agentLabel }

// Layer is the data source of values that agentctl declares.
const Layer = "agentctl"

// IntoStore reports that the command line asks for a store. The store of the configuration file
// is that of kvdb: a file must not decide where a command writes.
func IntoStore(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("store") || cmd.Flags().Changed("etcd-endpoints")
}

// withLabel returns a short key with the prefix of the agent with this label.
func withLabel(key, label string) string {
	return AllAgents + label + "/" + strings.TrimPrefix(key, "/")
}
