package config

import (
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
)

// hiddenHelp describes --secrets. gRPC has no field that asks for secrets: the agent sends them where it
// knows its clients, whether or not they are wanted.
const hiddenHelp = "Secrets are \"(secret)\" unless --secrets is given, which needs a Unix socket of the agent, or a client certificate."

// secretsFlag adds the flag --secrets.
func secretsFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("secrets", false, "print secrets too")
}

// shown returns the values that are printed: without secrets, unless they are wanted. It is an error if
// wanted secrets are hidden by the agent. If some are hidden, standard error says so.
func shown(s *session.Session, all []proto.Message, secrets bool) ([]proto.Message, error) {
	out := make([]proto.Message, len(all))
	hidden := 0
	for i, m := range all {
		out[i] = m
		if secrets {
			if models.CheckSecrets(m) != nil {
				hidden++
			}
			continue
		}
		if out[i] = models.Redacted(m); out[i] != m {
			hidden++
		}
	}
	switch {
	case hidden == 0:
	case secrets:
		return nil, fmt.Errorf("the agent hides the secrets of %s: it shows them only on a Unix socket, or to clients with a certificate", show.Count(hidden, "value"))
	default:
		fmt.Fprintf(s.Err, "agentctl: the secrets of %s are hidden (--secrets prints them); the agent refuses such values\n", show.Count(hidden, "value"))
	}
	return out, nil
}
