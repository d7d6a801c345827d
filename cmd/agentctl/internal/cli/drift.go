package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// drift returns the command that compares the system with the declared values.
func (a *app) drift() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "drift",
		Aliases: []string{"diff"},
		Short:   "Shows how the system differs from the declared values",
		Long: "Drift reads back the system and prints each value that differs from the declared one: what config resync would repair.\n" +
			"Nothing is changed. Values that wait or have failed are not part of it; see values.\n\n" + exitHelp,
		Args:        expectArgs(),
		Annotations: map[string]string{tellsChanges: ""},
	}
	f := a.formatFlag(cmd)
	cmd.RunE = a.withAgent(func(ctx context.Context, _ []string) error {
		var d wire.Drift
		if err := a.get(ctx, "/drift", nil, &d); err != nil {
			return err
		}
		var all []change
		for _, v := range d.Values {
			all = append(all, repairOf(v))
		}
		err := f.write(a.Out, d, func(out io.Writer) error { return a.printChanges(out, fmt.Sprintf("Of %d values", d.Read), all, 0) })
		if err == nil && len(all) > 0 {
			err = errChanges
		}
		for _, text := range d.NotReadBack {
			err = errors.Join(err, fmt.Errorf("not read back: %s", remote(text)))
		}
		return err
	})
	return cmd
}

// repairOf returns the change that would repair a value.
func repairOf(v wire.Drifted) change {
	c := change{key: v.Key, before: v.Actual, after: v.Desired}
	switch v.Kind {
	case "missing":
		c.symbol, c.note = creates, "missing"
	case "differs":
		c.symbol = updates
	default:
		c.symbol, c.note = deletes, "unexpected"
	}
	return c
}
