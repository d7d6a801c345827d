package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

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
	var view, origin string
	cmd := &cobra.Command{
		Use:   "dump MODEL...",
		Short: "Prints values as they are known, declared, or really stand",
		Long: "Dump prints the values of models: by name, by pattern such as linux.*, or all.\n" +
			"Views: cached is what the agent knows to stand, NB what is declared, SB what it reads back now.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("agentctl dump: MODEL is missing: want names, patterns such as linux.*, or all")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&view, "view", "cached", "cached, NB or SB")
	cmd.Flags().StringVar(&origin, "origin", "", "only values from there: NB, SB or unknown")
	f := formatFlag(cmd, "")
	cmd.RunE = a.looking(func(ctx context.Context, args []string) error {
		if origin != "" && !slices.Contains(origins(), origin) {
			return fmt.Errorf("origin: %q: want NB, SB or unknown", origin)
		}
		all, err := a.dumpAll(ctx, args, view)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(d dumped) bool { return origin != "" && originName(d.Origin) != origin })
		return f.write(a.Out, all, func(out io.Writer) error { return dumpTable(out, all) })
	})
	return cmd
}

func (a *app) dumpAll(ctx context.Context, patterns []string, view string) ([]dumped, error) {
	var index wire.DumpIndex
	if err := a.get(ctx, "/scheduler/dump", nil, &index); err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, prefix := range index.KeyPrefixes {
		has[prefix] = true
	}
	found, err := modelsLike(patterns, has)
	if err != nil {
		return nil, err
	}
	out := []dumped{}
	for _, m := range found {
		if !has[m.Prefix()] {
			return nil, fmt.Errorf("the agent implements no values of %s", m.Name())
		}
		var entries []wire.DumpEntry
		if err := a.get(ctx, "/scheduler/dump", url.Values{"key-prefix": {m.Prefix()}, "view": {view}}, &entries); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name(), err)
		}
		for _, e := range entries {
			out = append(out, dumped{m.Name(), e})
		}
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
