package cli

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// log returns the commands that show and change the log levels of the agent's components.
func (a *app) log() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Shows and changes the log levels of the agent",
		Long: "Each component of the agent has a logger with a level of its own. A change counts at once, until the end of the agent;\n" +
			"logs.conf has the levels of its start.",
	}
	cmd.AddCommand(a.logList(), a.logSet())
	return cmd
}

// logList returns the command that prints the loggers and their levels.
func (a *app) logList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list [LOGGER]",
		Aliases: []string{"ls"},
		Short:   "Prints the loggers and their levels",
		Long:    "List prints all loggers or, with LOGGER, those with this text in their names.",
		Args:    expectArgs("[LOGGER]"),
	}
	f := a.formatFlag(cmd)
	cmd.RunE = a.withAgent(func(ctx context.Context, args []string) error {
		all := []wire.LogLevel{}
		if err := a.get(ctx, "/log/list", nil, &all); err != nil {
			return err
		}
		shown := []wire.LogLevel{}
		for _, l := range all {
			if len(args) == 0 || strings.Contains(l.Logger, args[0]) {
				shown = append(shown, l)
			}
		}
		return f.write(a.Out, shown, func(out io.Writer) error { return levelTable(out, shown) })
	})
	return cmd
}

// logSet returns the command that changes the level of a logger.
func (a *app) logSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set LOGGER LEVEL",
		Short: "Changes the level of a logger",
		Long:  "Set changes the level of LOGGER to debug, info, warn or error, and prints it.",
		Args:  expectArgs("LOGGER", "LEVEL"),
	}
	f := a.formatFlag(cmd)
	cmd.RunE = a.withAgent(func(ctx context.Context, args []string) error {
		var now wire.LogLevel
		path := "/log/" + args[0] + "/" + args[1] // request escapes it
		if err := a.request(ctx, http.MethodPut, path, nil, nil, &now); err != nil {
			return err
		}
		return f.write(a.Out, now, func(out io.Writer) error { return levelTable(out, []wire.LogLevel{now}) })
	})
	return cmd
}

// levelTable prints one logger per line.
func levelTable(out io.Writer, levels []wire.LogLevel) error {
	t := newTable(out, "LOGGER", "LEVEL")
	for _, l := range levels {
		t.row(l.Logger, l.Level)
	}
	return t.end()
}
