package cli

import (
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

func (a *app) values() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "values [MODEL]",
		Short: "Prints the state of values",
		Long:  "Values prints the state of each declared value, of MODEL or of all, and below it of what is derived from it.",
		Args: cobra.MatchAll(want("[MODEL]"), func(_ *cobra.Command, args []string) error {
			for _, name := range args {
				if _, err := modelNamed(name); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	f := formatFlag(cmd, "proto")
	cmd.RunE = a.looking(func(ctx context.Context, args []string) error {
		prefix := ""
		if len(args) > 0 {
			m, err := modelNamed(args[0])
			if err != nil {
				return err
			}
			prefix = m.Prefix()
		}
		statuses := []wire.BaseValueStatus{}
		if err := a.get(ctx, "/scheduler/status", url.Values{"key-prefix": {prefix}, "key": {""}}, &statuses); err != nil {
			return err
		}
		return f.write(a.Out, statuses, func(out io.Writer) error { return valuesTable(out, statuses) })
	})
	return cmd
}

func valuesTable(out io.Writer, statuses []wire.BaseValueStatus) error {
	t := newTable(out, "MODEL", "NAME", "STATE", "DETAILS", "LAST OP", "ERROR")
	for _, st := range statuses {
		valueRow(t, st.Value)
		for _, d := range st.DerivedValues {
			valueRow(t, d)
		}
	}
	return t.end()
}

func valueRow(t table, st wire.ValueStatus) {
	model, name := modelAndName(st.Key)
	state := st.State
	if state == "OBTAINED" { // nobody declared it
		state = "obtained"
	}
	t.row(model, name, state, strings.Join(st.Details, ", "), st.LastOperation, st.Error)
}
