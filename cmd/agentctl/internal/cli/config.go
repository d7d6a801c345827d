package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// config returns the command for transactions and resyncs. By itself it prints its help.
func (a *app) config() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Transaction history; repair differences",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.configHistory(), a.configResync())
	return cmd
}

// configResync returns the command that makes the agent read back and repair its southbound.
func (a *app) configResync() *cobra.Command {
	var retry, verbose bool
	cmd := &cobra.Command{
		Use:   "resync",
		Short: "Reads back the actual state and repairs differences",
		Long:  "Resync makes the agent read back the actual state and repair differences from the declared values.\nIt prints the transaction.",
		Args:  expectArgs(),
	}
	cmd.Flags().BoolVar(&retry, "retry", false, "accepted for compatibility: failed operations are always retried later")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "make the agent log the differences")
	f := a.formatFlag(cmd)
	cmd.RunE = a.withAgent(func(ctx context.Context, _ []string) error {
		query := url.Values{}
		for name, on := range map[string]bool{"retry": retry, "verbose": verbose} {
			if on {
				query.Set(name, "1")
			}
		}
		var record wire.Record
		if err := a.request(ctx, http.MethodPost, "/scheduler/downstream-resync", query, nil, &record); err != nil {
			return err
		}
		// A record has no useful table: without -f it is printed as JSON.
		return f.write(a.Out, record, func(out io.Writer) error { return (&format{text: "json"}).write(out, record, nil) })
	})
	return cmd
}

// compact removes insignificant white space from JSON. Other text is returned unchanged.
func compact(data []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return string(data)
	}
	return b.String()
}
