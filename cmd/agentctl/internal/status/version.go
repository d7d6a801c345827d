package status

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// versions is the answer of the command version. The names of its fields are an interface of scripts.
type versions struct {
	Agentctl string
	Agent    *wire.Version // null: no agent answers
}

// version returns the command that prints the versions of agentctl and of the agent.
func version(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Prints the versions of agentctl and of the agent",
		Long: "Version prints the version of agentctl and that of the agent. If no agent answers, the exit code is 1; agentctl --version\n" +
			"prints only its own version, and asks nobody. The command status has all of the agent's build.",
		Example: "  agentctl version\n  agentctl version -f '{{.Agent.Version}}'",
		Args:    session.ExpectArgs(),
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v := versions{Agentctl: cmd.Root().Version}
		unanswered := s.WithAgent(func(ctx context.Context, _ []string) error {
			var of wire.Version
			err := s.Get(ctx, "/info/version", nil, &of)
			if err == nil {
				v.Agent = &of
			}
			return err
		})(cmd, args)
		if unanswered != nil && f.Word() != "" { // a template may name fields of the agent
			return unanswered
		}
		if err := f.Write(s.Out, v, v.print); err != nil {
			return err
		}
		return unanswered
	}
	return cmd
}

// print prints a line for each program.
func (v versions) print(out io.Writer) error {
	text := "agentctl  " + show.Line(v.Agentctl) + "\n"
	if v.Agent != nil {
		text += fmt.Sprintf("agent     %s\n", show.Line(v.Agent.Version))
	}
	_, err := io.WriteString(out, text)
	return err
}
