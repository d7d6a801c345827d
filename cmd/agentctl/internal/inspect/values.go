package inspect

import (
	"context"
	"io"
	"maps"
	"slices"
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
		Use:   "values [MODEL...]",
		Short: "Prints the state of values",
		Long: "Values prints the state of each declared value, of MODEL or of all models, each followed by the values derived from it.\n" +
			"The format wide adds the content of declared values, in lines of any length; secrets are \"(secret)\" in it.\n" +
			"With --watch, it then prints each value that changes, until it is interrupted or --timeout ends it. With --state too, that\n" +
			"includes values that leave these states.\n" + modelHelp,
		Example:           "  agentctl values\n  agentctl values linux.l3.route -o wide\n  agentctl values interfaces 'vpp.l2.*'\n  agentctl values linux.interfaces.interface --sources\n  agentctl values --state pending,failed --watch\n  agentctl values -f '{{range .}}{{.Value.Key}} {{.Value.State}}{{\"\\n\"}}{{end}}'",
		ValidArgsFunction: names.CompleteModel(s, session.ConfigClass),
		Args:              session.Patterns(""),
	}
	cmd.AddCommand(valuesRetry(s))
	f := show.FormatFlag(cmd, s, "proto", wide)
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
		if err == nil && watch && f.Word() == wide {
			err = session.Usagef("--watch and the format wide exclude each other: expected agentctl get MODEL --watch -o wide, which prints the content")
		}
		if err != nil {
			return err
		}
		known, err := s.Models(ctx, session.ConfigClass)
		if err != nil {
			return err
		}
		prefixes, err := prefixesOf(known, args)
		if err != nil {
			return err
		}
		if watch {
			return (&valueWatch{s: s, known: known, prefixes: prefixes, filter: wanted, format: f}).run(ctx)
		}
		t := valueTable{known: known, filter: wanted}
		if *sources {
			if t.from, err = sourcesByKey(ctx, s, prefixes); err != nil {
				return err
			}
		}
		return t.printUnder(ctx, s, prefixes, f)
	})
	return cmd
}

// allKeys are the prefixes of all values.
func allKeys() []string { return []string{""} }

// prefixesOf returns the prefixes of the keys of models, each once, or allKeys if none is named.
func prefixesOf(known session.Catalogue, given []string) (out []string, err error) {
	for _, pattern := range given {
		found, err := known.Like(pattern)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if !slices.Contains(out, m.KeyPrefix) {
				out = append(out, m.KeyPrefix)
			}
		}
	}
	if len(out) == 0 {
		return allKeys(), nil
	}
	return out, nil
}

// printUnder prints the values whose keys begin with one of the prefixes.
func (v valueTable) printUnder(ctx context.Context, s *session.Session, prefixes []string, f *show.Format) error {
	statuses, err := statusesUnder(ctx, s, prefixes)
	if err != nil {
		return err
	}
	statuses = v.filter.keep(statuses)
	if f.Word() != wide {
		return f.Write(s.Out, statuses, func(out io.Writer) error { return v.print(out, statuses) })
	}
	if v.content, err = contentsOf(ctx, s, v.known, statuses); err != nil {
		return err
	}
	return v.print(s.Out, statuses)
}

// valueColumns are the columns of a table of values.
func valueColumns() []string {
	return []string{"MODEL", "NAME", "STATE", "DETAILS", "LAST OP", "ERROR"}
}

// shortColumns are those of short words, which say nothing if they are cut.
func shortColumns() []string { return []string{"STATE", "LAST OP", "SINCE"} }

// A valueTable prints values in columns.
type valueTable struct {
	known   session.Catalogue
	filter  stateFilter       // of derived values, too
	from    map[string]string // the sources of each key; nil: no such column
	content *contents         // nil: no such columns
}

// contents are the values of models, by key.
type contents struct{ declared, actual map[string]*wire.Message }

// contentsOf returns the contents of the models that have one of the values.
func contentsOf(ctx context.Context, s *session.Session, known session.Catalogue, of []wire.BaseValueStatus) (*contents, error) {
	out := &contents{map[string]*wire.Message{}, map[string]*wire.Message{}}
	g := getter{s: s}
	done := map[string]bool{"": true} // that of a key without a model
	for _, st := range of {
		name, _ := known.ModelAndName(st.Value.Key)
		if done[name] {
			continue
		}
		done[name] = true
		m, err := known.Named(name)
		if err != nil {
			return nil, err
		}
		for view, into := range map[string]map[string]*wire.Message{"NB": out.declared, "cached": out.actual} {
			found, err := g.dumped(ctx, m, view)
			if err != nil {
				return nil, err
			}
			maps.Copy(into, found)
		}
	}
	return out, nil
}

// print prints values and derived values with states of the filter.
func (v valueTable) print(out io.Writer, statuses []wire.BaseValueStatus) error {
	columns := valueColumns()
	if v.from != nil {
		columns = append(columns, "SOURCES")
	}
	if v.content != nil {
		columns = append(columns, "DECLARED", "ACTUAL")
	}
	t := tableFor(out, v.content != nil, columns...)
	t.Whole(append(shortColumns(), "NAME")...)
	for _, st := range statuses {
		if v.filter.fits(st.Value.State) {
			v.row(t, st.Value)
		}
		for _, d := range st.DerivedValues {
			v.row(t, d)
		}
	}
	return t.End()
}

// row adds one value. The state OBTAINED is printed in lower case: nothing declared the
// value, so it is no result.
func (v valueTable) row(t *show.Table, st wire.ValueStatus) {
	model, name := v.known.ModelAndName(st.Key)
	state := st.State
	if state == "OBTAINED" {
		state = "obtained"
	}
	cells := []string{model, name, state, strings.Join(st.Details, ", "), st.LastOperation, show.Remote(st.Error)}
	if v.from != nil {
		cells = append(cells, v.from[st.Key])
	}
	if v.content != nil {
		i := item{Declared: v.content.declared[st.Key], Actual: v.content.actual[st.Key]}
		cells = append(cells, compactOf(i.Declared), actualOf(i))
	}
	t.Row(cells...)
}
