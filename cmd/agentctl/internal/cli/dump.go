package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A dumped is one value of a dump.
type dumped struct {
	Model string
	wire.DumpEntry
}

// origins are the words for wire's numbers.
func origins() []string { return []string{"unknown", "NB", "SB"} }

func originName(n int) string {
	if n < 0 || n >= len(origins()) {
		n = wire.UnknownOrigin
	}
	return origins()[n]
}

func (a *app) dump() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dump MODEL...",
		Short: "Prints values as they are known, declared, or really stand",
		Long: "Dump prints the values of models: by name, by pattern such as linux.*, or all.\n" +
			"Views: cached is what the agent knows to stand, NB what is declared, SB what it reads back now.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("agentctl dump: MODEL is missing: expected names, patterns such as linux.*, or all")
			}
			for _, pattern := range args {
				if _, err := modelsLike(pattern); err != nil {
					return err
				}
			}
			return nil
		},
	}
	view := choiceFlag(cmd, "view", "cached", "what is shown", "cached", "NB", "SB")
	origin := choiceFlag(cmd, "origin", "", "only values from there", "NB", "SB", "unknown")
	f := formatFlag(cmd, "proto")
	cmd.RunE = a.looking(func(ctx context.Context, args []string) error {
		all, err := a.dumpAll(ctx, args, view.value)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(d dumped) bool { return origin.value != "" && originName(d.Origin) != origin.value })
		return f.write(a.Out, all, func(out io.Writer) error { return dumpTable(out, all) })
	})
	return cmd
}

// dumpAll asks for the models that the patterns name, each once.
func (a *app) dumpAll(ctx context.Context, patterns []string, view string) ([]dumped, error) {
	var index wire.DumpIndex
	if err := a.get(ctx, "/scheduler/dump", nil, &index); err != nil {
		return nil, err
	}
	out, done := []dumped{}, map[string]bool{}
	for _, pattern := range patterns {
		implemented, err := implementedBy(index, pattern)
		if err != nil {
			return nil, err
		}
		for _, m := range implemented {
			if done[m.Name()] {
				continue
			}
			done[m.Name()] = true
			if out, err = a.dumpOne(ctx, out, m, view); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// implementedBy are the models like pattern whose values the agent can dump.
func implementedBy(index wire.DumpIndex, pattern string) ([]*models.Model, error) {
	found, err := modelsLike(pattern)
	found = slices.DeleteFunc(found, func(m *models.Model) bool { return !slices.Contains(index.KeyPrefixes, m.Prefix()) })
	if err == nil && len(found) == 0 && pattern != "all" {
		err = fmt.Errorf("the agent implements no values of %s", pattern)
	}
	return found, err
}

func (a *app) dumpOne(ctx context.Context, out []dumped, m *models.Model, view string) ([]dumped, error) {
	var entries []wire.DumpEntry
	if err := a.get(ctx, "/scheduler/dump", url.Values{"key-prefix": {m.Prefix()}, "view": {view}}, &entries); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name(), err)
	}
	for _, e := range entries {
		out = append(out, dumped{m.Name(), e})
	}
	return out, nil
}

func dumpTable(out io.Writer, all []dumped) error {
	t := newTable(out, "MODEL", "ORIGIN", "VALUE", "METADATA", "KEY")
	for _, d := range all {
		value, meta := "", string(d.Metadata)
		if d.Value != nil {
			value = compact(d.Value.ProtoMsgData)
		}
		if meta == "null" {
			meta = ""
		}
		t.row(d.Model, originName(d.Origin), value, compact([]byte(meta)), d.Key)
	}
	return t.end()
}
