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

func (a *app) config() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Shows what became of the configuration, and has it brought about again",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.configHistory(), a.configResync())
	return cmd
}

func (a *app) configResync() *cobra.Command {
	var retry, verbose bool
	cmd := &cobra.Command{
		Use:   "resync",
		Short: "Reads back what stands, and mends what is not as declared",
		Long:  "Resync has the agent read back what stands and mend what is not as declared. It prints the transaction.",
		Args:  want(),
	}
	cmd.Flags().BoolVar(&retry, "retry", false, "accepted for compatibility: what fails is always tried again later")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "have the agent log what it finds")
	f := formatFlag(cmd)
	cmd.RunE = a.looking(func(ctx context.Context, _ []string) error {
		query := url.Values{}
		for name, on := range map[string]bool{"retry": retry, "verbose": verbose} {
			if on {
				query.Set(name, "1")
			}
		}
		var record wire.Record
		if err := a.ask(ctx, http.MethodPost, "/scheduler/downstream-resync", query, nil, &record); err != nil {
			return err
		}
		return f.write(a.Out, record, func(out io.Writer) error { return (&format{text: "json"}).write(out, record, nil) })
	})
	return cmd
}

// compact is JSON without needless space.
func compact(data []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return string(data)
	}
	return b.String()
}
