// Package connections has the command connections of agentctl: the links of the agent to what it programs, and what
// is unknown while they are lost.
package connections

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Command returns the command that prints the connections, with the one that forgets the values of one.
func Command(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "connections",
		Short: "Prints the connections to what is programmed, and what is unknown",
		Long: "Connections prints the state of each connection, such as linux and vpp, and the kinds of values of which nobody knows which exist.\n" +
			"LOST: the connection is down. Its values may exist, so what depends on them elsewhere stays. GONE: it is down, and an operator has\n" +
			"said that its values are gone. READING: it is up again, and its values are being read back. READY: they were read back, except\n" +
			"kinds that are named with the reason.",
		Example: "  agentctl connections\n  agentctl connections -f json",
		Args:    session.ExpectArgs(),
	}
	cmd.AddCommand(forget(s))
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, _ []string) error {
		all := []wire.Connection{}
		if err := s.Get(ctx, "/scheduler/connections", nil, &all); err != nil {
			return err
		}
		return f.Write(s.Out, all, func(out io.Writer) error { return table(out, all) })
	})
	return cmd
}

// forget returns the command that takes the values of a lost connection for gone.
func forget(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget NAME",
		Short: "Says that the values of a lost connection are gone for good",
		Long: "Forget says that the system behind the lost connection NAME is gone for good, with all its values. The agent cannot know that: it\n" +
			"keeps what depends on them elsewhere. Now it removes that, and prints the operations. Declared values wait until there is such\n" +
			"a system again, which is read back as usual.",
		Example:           "  agentctl connections forget vpp",
		ValidArgsFunction: names.CompleteConnection(s),
		Args:              session.ExpectArgs("NAME"),
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		var record wire.Record
		path := "/scheduler/connections/" + args[0] + "/forget" // Request escapes it
		if err := s.Request(ctx, http.MethodPost, path, nil, nil, &record); err != nil {
			return session.Missing(err)
		}
		return f.Write(s.Out, record, func(out io.Writer) error { return show.OperationsTable(out, record.Executed) })
	})
	return cmd
}

// unknown returns a line for each reason why values of a connection are unknown. Those that nobody knows because
// the connection is lost are not named one by one: they are all of it, and its row has the reason.
func unknown(c wire.Connection) []string {
	others := slices.DeleteFunc(slices.Clone(c.Unknown), func(u wire.Unknown) bool {
		return c.Error != "" && u.Reason == c.Name+": "+c.Error
	})
	lines := show.Unknown(others)
	if n := len(c.Unknown) - len(others); n > 0 {
		lines = append(lines, fmt.Sprintf("nobody knows which values of %s exist (kinds: %d; -f json names them)", show.Line(c.Name), n))
	}
	return lines
}

// table prints one connection per line, and then what is unknown.
func table(out io.Writer, all []wire.Connection) error {
	t := show.NewTable(out, "CONNECTION", "STATE", "SINCE", "REASON")
	t.Whole("CONNECTION", "STATE")
	for _, c := range all {
		t.Row(c.Name, c.State, show.Short(time.Since(c.Since))+" ago", show.Remote(c.Error))
	}
	if err := t.End(); err != nil {
		return err
	}
	for _, c := range all {
		for _, line := range unknown(c) {
			if _, err := fmt.Fprintln(out, show.Broken(out, "  "+line, 4)); err != nil {
				return err
			}
		}
	}
	return nil
}
