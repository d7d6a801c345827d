package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// model returns the commands about the models of the agent.
func model(s *session.Session) *cobra.Command {
	cmd := session.Group(&cobra.Command{
		Use:     "model",
		Aliases: []string{"models"},
		Short:   "Shows the models: the kinds of values that the agent knows",
		Example: "  agentctl model list\n  agentctl model inspect linux.l3.route",
	})
	cmd.AddCommand(modelList(s), modelInspect(s))
	return cmd
}

// modelList returns the command that prints one model per line.
func modelList(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list [PATTERN]",
		Aliases: []string{"ls", "l"},
		Short:   "Prints the models",
		Long: "List prints the models of the agent, or those that PATTERN matches, such as linux.*.\n" +
			"Agents of other programs can have more models than agentctl was built with.",
		Example:           "  agentctl model list\n  agentctl model list 'linux.*'",
		ValidArgsFunction: names.CompleteModel(s, ""),
		Args:              cobra.MatchAll(session.ExpectArgs("[PATTERN]"), session.Patterns("")),
	}
	class := show.ChoiceFlag(cmd, "class", "", "print only models of this class", session.ConfigClass, "metrics")
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		known, err := s.Models(ctx, class.Value)
		if err != nil {
			return err
		}
		shown := known
		if len(args) > 0 {
			if shown, err = known.Like(args[0]); err != nil {
				return err
			}
		}
		rows := make([]modelRow, len(shown))
		for i, m := range shown {
			rows[i] = rowOf(m)
		}
		return f.Write(s.Out, rows, func(out io.Writer) error { return modelTable(out, shown) })
	})
	return cmd
}

// modelInspect returns the command that prints all that is known of models.
func modelInspect(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "inspect MODEL...",
		Aliases: []string{"i"},
		Short:   "Prints keys and fields of models, with types, limits and examples",
		Long: "Inspect prints the models of the agent, also those that agentctl was not built with: as JSON, with what vpp-agent 3.5 printed.\n" +
			"The format wide is a table of all fields with types, limits and examples; the formats json and yaml have all of that.\n" +
			"If no agent listens, it says so and prints the built-in models.",
		Example:           "  agentctl model inspect linux.l3.route\n  agentctl model inspect linux.l3.route -o wide",
		ValidArgsFunction: names.CompleteModel(s, ""),
		Args:              session.Patterns("MODEL is missing: expected names, patterns such as linux.*, or all"),
	}
	f := show.FormatFlag(cmd, s, wide)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		known, err := s.Models(ctx, "")
		offline := errors.Is(err, session.ErrNoAgent)
		if offline {
			fmt.Fprintln(s.Err, "agentctl: these are the built-in models:", show.Line(err.Error()))
			known, err = session.BuiltIn(""), nil
		}
		if err != nil {
			return err
		}
		shown := []wire.Model{}
		for _, pattern := range args {
			found, err := known.Like(pattern)
			if err != nil {
				return err
			}
			shown = append(shown, found...)
		}
		described, err := describeModels(s, shown)
		if err != nil {
			return err
		}
		if f.Word() == wide {
			return fieldTables(s.Out, described, offline)
		}
		return f.Write(s.Out, described, func(out io.Writer) error { return olderJSON(out, described) })
	})
	return cmd
}

// olderJSON prints the fields of models that vpp-agent 3.5 printed.
func olderJSON(out io.Writer, all []describedModel) error {
	older := make([]olderModel, len(all))
	for i, m := range all {
		older[i] = m.olderModel
	}
	return show.As("json").Write(out, older, nil)
}

// modelTable prints one model per line.
func modelTable(out io.Writer, models []wire.Model) error {
	t := show.NewTable(out, "MODEL", "CLASS", "PROTO MESSAGE", "KEY PREFIX")
	t.Whole("MODEL")
	for _, m := range models {
		t.Row(m.Name, m.Class, m.ProtoName, m.KeyPrefix)
	}
	return t.End()
}
