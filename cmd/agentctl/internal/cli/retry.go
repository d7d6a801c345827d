package cli

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

func (a *app) valuesRetry() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry KEY",
		Short: "Has a failed value tried again",
		Long: "Retry has the agent try the value KEY again, and what is derived from it, as far as that has failed: at once,\n" +
			"and whatever the reason was. It prints what was done, and ends with 1 if that fails again.",
		Args: want("KEY"),
	}
	f := formatFlag(cmd)
	cmd.RunE = a.looking(func(ctx context.Context, args []string) error {
		var record wire.Record
		if err := a.ask(ctx, http.MethodPost, "/scheduler/retry", url.Values{"key": {args[0]}}, nil, &record); err != nil {
			return err
		}
		return f.write(a.Out, record, func(out io.Writer) error { return operationsTable(out, record.Executed) })
	})
	return cmd
}
