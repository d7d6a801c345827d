package inspect

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// explain returns the command that explains the state of one value.
func explain(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "explain VALUE...",
		SuggestFor: []string{"why", "reason"},
		Short:      "Explains why a value is not applied",
		Long: "Explain prints the state of VALUE, a key, a name, or a unique part of either, and who wrote it, as the history does:\n" +
			"\"etcd, revision 57\". If the value is not applied, the lines below it name the cause, then the cause of that cause, down to one\n" +
			"that a user can fix. If the value is applied, they name its parts that are not. Of a key without a value it prints who would\n" +
			"make one, and the exit code is 3.",
		Example:           "  agentctl explain veth1\n  agentctl explain 10.1.0.0/16 veth2\n  agentctl explain config/linux/interfaces/v2/interface/veth1",
		ValidArgsFunction: names.Each(names.CompleteValue(s)),
		Args:              session.ExpectSome("VALUE"),
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		all, missing, err := explanations(ctx, s, args)
		if err != nil {
			return err
		}
		err = show.WriteEach(f, s.Out, all, func(out io.Writer) error {
			for _, e := range all {
				if _, err := io.WriteString(out, show.Broken(out, explanationLines(e, ""), 4)); err != nil {
					return err
				}
			}
			return nil
		})
		return errors.Join(err, missing)
	})
	return cmd
}

// explanations asks the agent to explain values. The error missing names the keys that have no value.
func explanations(ctx context.Context, s *session.Session, given []string) (out []wire.Explanation, missing, err error) {
	for _, text := range given {
		key, err := names.ValueOrKey(ctx, s, text)
		if err != nil {
			return nil, nil, err
		}
		var e wire.Explanation
		if err := s.Get(ctx, "/scheduler/explain", url.Values{"key": {key}}, &e); err != nil {
			return nil, nil, err
		}
		if e.State == "NONEXISTENT" {
			missing = errors.Join(missing, session.NotFound("no value has the key "+show.Line(key)))
		}
		out = append(out, e)
	}
	return out, missing, nil
}

// explanationLines returns the explanation as text. Each cause is indented below its effect.
func explanationLines(e wire.Explanation, indent string) string {
	var b strings.Builder
	// The text quotes errors, which may come from a value.
	b.WriteString(indent + show.Line(e.Text) + "\n")
	for _, cause := range e.Because {
		b.WriteString(explanationLines(cause, indent+"  "))
	}
	return b.String()
}
