package inspect

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// values returns the command that prints the state of values.
func values(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "values [MODEL]",
		Short: "Prints the state of values",
		Long: "Values prints the state of each declared value, of MODEL or of all models, each followed by the values derived from it.\n" +
			"With --watch, it then prints each value that changes, until it is interrupted or --timeout ends it. With --state too, that\n" +
			"includes values that leave these states.",
		Example:           "  agentctl values\n  agentctl values linux.interfaces.interface --sources\n  agentctl values --state pending,failed --watch\n  agentctl values -f '{{range .}}{{.Value.Key}} {{.Value.State}}{{\"\\n\"}}{{end}}'",
		ValidArgsFunction: names.CompleteModel(s, session.ConfigClass),
		Args:              session.ExpectArgs("[MODEL]"),
	}
	cmd.AddCommand(valuesRetry(s))
	f := show.FormatFlag(cmd, s, "proto")
	var filter []string
	var watch bool
	cmd.Flags().StringSliceVar(&filter, "state", nil, "print only values with these states, separated by commas")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states(), cobra.ShellCompDirectiveNoFileComp)) // fails only without the flag
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "follow the changes")
	sources := cmd.Flags().Bool("sources", false, "add a column with the sources that hold the key, the highest priority first; * takes effect, ! is refused")
	cmd.RunE = s.WithAgentWhile(&watch, func(ctx context.Context, args []string) error {
		wanted, err := filterOf(filter)
		if err == nil && watch && *sources {
			err = session.Usagef("--watch and --sources exclude each other")
		}
		if err != nil {
			return err
		}
		known, err := s.Models(ctx, session.ConfigClass)
		if err != nil {
			return err
		}
		prefix := ""
		if len(args) > 0 {
			m, err := known.Named(args[0])
			if err != nil {
				return err
			}
			prefix = m.KeyPrefix
		}
		if watch {
			return (&valueWatch{s: s, known: known, prefix: prefix, filter: wanted, format: f}).run(ctx)
		}
		statuses, err := statusesUnder(ctx, s, prefix)
		if err != nil {
			return err
		}
		statuses = wanted.keep(statuses)
		var from map[string]string
		if *sources {
			var err error
			from, err = sourcesByKey(ctx, s, prefix)
			if err != nil {
				return err
			}
		}
		return f.Write(s.Out, statuses, func(out io.Writer) error { return valuesTable(out, known, statuses, wanted, from) })
	})
	return cmd
}

// valueColumns are the columns of a table of values.
func valueColumns() []string {
	return []string{"MODEL", "NAME", "STATE", "DETAILS", "LAST OP", "ERROR"}
}

// shortColumns are those of short words, which say nothing if they are cut.
func shortColumns() []string { return []string{"STATE", "LAST OP", "SINCE"} }

// valuesTable prints values and derived values with wanted states. If from is not nil, the last column has the
// sources of each value.
func valuesTable(out io.Writer, known session.Catalogue, statuses []wire.BaseValueStatus, wanted stateFilter, from map[string]string) error {
	columns := valueColumns()
	if from != nil {
		columns = append(columns, "SOURCES")
	}
	t := show.NewTable(out, columns...)
	t.Whole(shortColumns()...)
	for _, st := range statuses {
		if wanted.fits(st.Value.State) {
			valueRow(t, known, st.Value, from)
		}
		for _, d := range st.DerivedValues {
			valueRow(t, known, d, from)
		}
	}
	return t.End()
}

// valueRow adds one value. The state OBTAINED is printed in lower case: nothing declared the
// value, so it is no result.
func valueRow(t *show.Table, known session.Catalogue, st wire.ValueStatus, from map[string]string) {
	model, name := known.ModelAndName(st.Key)
	state := st.State
	if state == "OBTAINED" {
		state = "obtained"
	}
	cells := []string{model, name, state, strings.Join(st.Details, ", "), st.LastOperation, show.Remote(st.Error)}
	if from != nil {
		cells = append(cells, from[st.Key])
	}
	t.Row(cells...)
}
