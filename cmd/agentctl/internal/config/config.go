// Package config has the command config of agentctl: declared and actual values, events, transactions and
// resyncs.
package config

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Command returns the command for declared values, transactions and resyncs. By itself it prints its help.
func Command(s *session.Session) *cobra.Command {
	cmd := session.Group(&cobra.Command{
		Use:     "config",
		Short:   "Reads and changes declared values; history; repairs differences",
		Example: "  agentctl config history\n  agentctl config get > network.yaml",
	})
	cmd.AddCommand(get(s), update(s), remove(s), retrieve(s), watch(s), history(s), resync(s))
	return cmd
}

// resync returns the command that makes the agent read back and repair its southbound.
func resync(s *session.Session) *cobra.Command {
	var retry, verbose bool
	cmd := &cobra.Command{
		Use:     "resync",
		Short:   "Reads back the actual state and repairs differences",
		Long:    "Resync makes the agent read back the actual state and repair differences from the declared values.\nIt prints the transaction.",
		Example: "  agentctl config resync\n  agentctl config resync -f '{{len .Executed}}'",
		Args:    session.ExpectArgs(),
	}
	cmd.Flags().BoolVar(&retry, "retry", false, "accepted for compatibility: failed operations are always retried later")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "make the agent log the differences")
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, _ []string) error {
		query := url.Values{}
		for name, on := range map[string]bool{"retry": retry, "verbose": verbose} {
			if on {
				query.Set(name, "1")
			}
		}
		var record wire.Record
		if err := s.Request(ctx, http.MethodPost, "/scheduler/downstream-resync", query, nil, &record); err != nil {
			return err
		}
		// A record has no useful table: without -f it is printed as JSON.
		return f.Write(s.Out, record, func(out io.Writer) error { return show.As("json").Write(out, record, nil) })
	})
	return cmd
}
