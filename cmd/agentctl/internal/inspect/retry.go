package inspect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// valuesRetry returns the command that retries one failed value.
func valuesRetry(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry VALUE...",
		Short: "Retries a failed value now",
		Long: "Retry makes the agent retry VALUE (a key, a name, or a unique part of either) and the values derived from it, if they failed, without waiting for the next attempt.\n" +
			"It prints the operations. The exit code is 1 if the value fails again.",
		Example:           "  agentctl values retry veth1",
		ValidArgsFunction: names.Each(names.CompleteValue(s)),
		Args:              session.ExpectSome("VALUE"),
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		keys, err := names.Values(ctx, s, args)
		if err != nil {
			return err
		}
		var records []wire.Record
		var executed []wire.Operation
		var failed error
		for _, key := range keys {
			var record wire.Record
			if err := s.Request(ctx, http.MethodPost, "/scheduler/retry", url.Values{"key": {key}}, nil, &record); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			records, executed = append(records, record), append(executed, record.Executed...)
		}
		if len(records) == 0 {
			return failed
		}
		err = show.WriteEach(f, s.Out, records, func(out io.Writer) error { return show.OperationsTable(out, executed) })
		return errors.Join(err, failed)
	})
	return cmd
}
