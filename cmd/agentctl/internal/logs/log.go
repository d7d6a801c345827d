// Package logs has the command log of agentctl: the log levels of the agent.
package logs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Command returns the commands that show and change the log levels of the agent's components.
func Command(s *session.Session) *cobra.Command {
	cmd := session.Group(&cobra.Command{
		Use:   "log",
		Short: "Shows and changes the log levels of the agent",
		Long: "Each component of the agent has a logger with a level of its own. A change counts at once, until the end of the agent;\n" +
			"logs.conf has the levels of its start.",
		Example: "  agentctl log list\n  agentctl log set kvscheduler debug",
	})
	cmd.AddCommand(list(s), set(s))
	return cmd
}

// list returns the command that prints the loggers and their levels.
func list(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "list [LOGGER]",
		Aliases:           []string{"ls"},
		Short:             "Prints the loggers and their levels",
		Long:              "List prints all loggers or, with LOGGER, those with this text in their names.",
		Example:           "  agentctl log list\n  agentctl log list etcd",
		ValidArgsFunction: names.CompleteLogger(s),
		Args:              session.ExpectArgs("[LOGGER]"),
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		all := []wire.LogLevel{}
		if err := s.Get(ctx, "/log/list", nil, &all); err != nil {
			return err
		}
		shown := []wire.LogLevel{}
		for _, l := range all {
			if len(args) == 0 || strings.Contains(l.Logger, args[0]) {
				shown = append(shown, l)
			}
		}
		return f.Write(s.Out, shown, func(out io.Writer) error { return levelTable(out, shown) })
	})
	return cmd
}

// set returns the command that changes the level of a logger.
func set(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "set LOGGER LEVEL",
		Short:             "Changes the level of a logger",
		Long:              "Set changes the level of LOGGER to debug, info, warn or error, and prints it.",
		Example:           "  agentctl log set kvscheduler debug",
		ValidArgsFunction: names.CompleteLogger(s, "debug", "info", "warn", "error"),
		Args:              session.ExpectArgs("LOGGER", "LEVEL"),
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		var now wire.LogLevel
		path := "/log/" + args[0] + "/" + args[1] // request escapes it
		if err := s.Request(ctx, http.MethodPut, path, nil, nil, &now); err != nil {
			return err
		}
		return f.Write(s.Out, now, func(out io.Writer) error {
			_, err := fmt.Fprintf(out, "logger %s has been set to level %s\n", show.Line(now.Logger), show.Line(now.Level))
			return err
		})
	})
	return cmd
}

// levelTable prints one logger per line.
func levelTable(out io.Writer, levels []wire.LogLevel) error {
	t := show.NewTable(out, "LOGGER", "LEVEL")
	for _, l := range levels {
		t.Row(l.Logger, l.Level)
	}
	return t.End()
}
