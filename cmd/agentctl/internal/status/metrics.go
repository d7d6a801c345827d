package status

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// metrics returns the commands about the models of metrics.
func metrics(s *session.Session) *cobra.Command {
	cmd := session.Group(&cobra.Command{
		Use:     "metrics",
		Short:   "Prints the metrics of the agent",
		Long:    "Metrics prints counters of the agent as one JSON object each. GET /metrics of the HTTP server has those for Prometheus.",
		Example: "  agentctl metrics list\n  agentctl metrics get govppmux.stats",
	})
	cmd.AddCommand(metricsList(s), metricsGet(s))
	return cmd
}

// metricsList returns the command that prints the names of the metrics.
func metricsList(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "list [PATTERN]",
		Aliases:           []string{"ls", "l"},
		Short:             "Prints the names of the metrics",
		Example:           "  agentctl metrics list",
		ValidArgsFunction: names.CompleteModel(s, session.MetricsClass),
		Args:              cobra.MatchAll(session.ExpectArgs("[PATTERN]"), session.Patterns("")),
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		known, err := s.Models(ctx, session.MetricsClass)
		if err != nil {
			return err
		}
		if len(args) > 0 {
			if known, err = known.Like(args[0]); err != nil {
				return err
			}
		}
		return f.Write(s.Out, known, func(out io.Writer) error {
			t := show.NewTable(out, "METRIC", "PROTO MESSAGE")
			t.Whole("METRIC")
			for _, m := range known {
				t.Row(m.Name, m.ProtoName)
			}
			return t.End()
		})
	})
	return cmd
}

// metricsGet returns the command that prints the metrics of a model.
func metricsGet(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "get METRIC",
		Aliases:           []string{"g"},
		Short:             "Prints metrics as JSON",
		Long:              "Get prints the metrics METRIC, such as govppmux.stats, as JSON. The command list prints their names.",
		Example:           "  agentctl metrics get govppmux.stats",
		ValidArgsFunction: names.CompleteModel(s, session.MetricsClass),
		Args:              session.ExpectArgs("METRIC"),
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		known, err := s.Models(ctx, session.MetricsClass)
		if err != nil {
			return err
		}
		m, err := known.Named(args[0])
		if err != nil {
			return err
		}
		var text json.RawMessage
		if err := s.Get(ctx, "/metrics/"+m.Name, nil, &text); err != nil {
			return err
		}
		var answer any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // counters have more digits than a float64
		if err := d.Decode(&answer); err != nil {
			return err
		}
		return f.Write(s.Out, answer, func(out io.Writer) error { return show.As("json").Write(out, answer, nil) })
	})
	return cmd
}
