package plan

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// drift returns the command that compares the system with the declared values.
func drift(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "drift",
		Aliases: []string{"diff"},
		Short:   "Shows how the system differs from the declared values",
		Long: "Drift reads back the system and prints each value that differs from the declared one: what config resync would repair.\n" +
			"A value that could not be applied is one of them, with its state. Nothing is changed.\n" +
			"Values that nobody knows, because their connection is lost, are not compared; they are named, and the exit code is 1.\n" +
			"Values that wait for others or are invalid are not part of it; see values.\n\n" + exitHelp,
		Example:     "  agentctl drift",
		Args:        session.ExpectArgs(),
		Annotations: map[string]string{session.TellsChanges: ""},
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, _ []string) error {
		var d wire.Drift
		if err := s.Get(ctx, "/drift", nil, &d); err != nil {
			return err
		}
		var all []show.Change
		for _, v := range d.Values {
			all = append(all, repairOf(v))
		}
		err := f.Write(s.Out, d, func(out io.Writer) error {
			return show.Changes(out, s.Env, "Of "+show.Count(d.Read, "value"), all, 0)
		})
		if err == nil && len(all) > 0 {
			err = session.ErrChanges
		}
		for _, text := range d.NotReadBack {
			err = errors.Join(err, fmt.Errorf("not read back: %s", show.Remote(text)))
		}
		return errors.Join(err, unknown(d.Unknown))
	})
	return cmd
}

// unknown returns an error that names the kinds that could not be compared; nil: there are none.
func unknown(kinds []wire.Unknown) (err error) {
	for _, line := range show.Unknown(kinds) {
		err = errors.Join(err, errors.New(line))
	}
	return err
}

// repairOf returns the change that would repair a value.
func repairOf(v wire.Drifted) show.Change {
	c := show.Change{Key: v.Key, Before: v.Actual, After: v.Desired}
	switch v.Kind {
	case "missing":
		c.Symbol, c.Note = show.Creates, "missing"
	case "differs":
		c.Symbol = show.Updates
	default:
		c.Symbol, c.Note = show.Deletes, "unexpected"
	}
	switch {
	case v.State != "" && c.Note != "":
		c.Note += ", " + v.State
	case v.State != "":
		c.Note = v.State
	}
	return c
}
