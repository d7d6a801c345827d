package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// model returns the commands about the models of the agent.
func (a *app) model() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "model",
		Aliases: []string{"models"},
		Short:   "Shows the models: the kinds of values that the agent knows",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.modelList(), a.modelInspect())
	return cmd
}

// modelList returns the command that prints one model per line.
func (a *app) modelList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list [PATTERN]",
		Aliases: []string{"ls", "l"},
		Short:   "Prints the models",
		Long: "List prints the models of the agent, or those that PATTERN matches, such as linux.*.\n" +
			"Agents of other programs can have more models than agentctl was built with.",
		Args: cobra.MatchAll(expectArgs("[PATTERN]"), patterns("")),
	}
	class := choiceFlag(cmd, "class", "", "print only models of this class", configClass, "metrics")
	f := a.formatFlag(cmd)
	cmd.RunE = a.withAgent(func(ctx context.Context, args []string) error {
		known, err := a.models(ctx, class.value)
		if err != nil {
			return err
		}
		shown := known
		if len(args) > 0 {
			if shown, err = known.like(args[0]); err != nil {
				return err
			}
		}
		return f.write(a.Out, shown, func(out io.Writer) error { return modelTable(out, shown) })
	})
	return cmd
}

// modelInspect returns the command that prints all that is known of models.
func (a *app) modelInspect() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "inspect MODEL...",
		Aliases: []string{"i"},
		Short:   "Prints the keys, the message and the field of models",
		Args:    patterns("agentctl model inspect: MODEL is missing: expected names, patterns such as linux.*, or all"),
	}
	f := a.formatFlag(cmd)
	cmd.RunE = a.withAgent(func(ctx context.Context, args []string) error {
		known, err := a.models(ctx, "")
		if err != nil {
			return err
		}
		shown := []wire.Model{}
		for _, pattern := range args {
			found, err := known.like(pattern)
			if err != nil {
				return err
			}
			shown = append(shown, found...)
		}
		return f.write(a.Out, shown, func(out io.Writer) error { return (&format{text: "json"}).write(out, shown, nil) })
	})
	return cmd
}

// modelTable prints one model per line.
func modelTable(out io.Writer, models []wire.Model) error {
	t := newTable(out, "MODEL", "CLASS", "PROTO MESSAGE", "KEY PREFIX")
	for _, m := range models {
		t.row(m.Name, m.Class, m.ProtoName, m.KeyPrefix)
	}
	return t.end()
}
