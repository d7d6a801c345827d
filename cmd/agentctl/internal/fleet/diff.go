package fleet

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/summary"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// diff returns the command that compares the keys of two agents.
func diff(s *session.Session, store *session.DirectStore) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff LABEL1 LABEL2",
		Short: "Compares the declared configurations of two agents",
		Long: "Diff prints how the keys below config/ of LABEL2 differ from those of LABEL1 in the store, field by field:\n" +
			"+ only LABEL2 has the key, - only LABEL1, ~ both have it with different values.\n\n" +
			"Exit codes: 0 no difference, 2 differences, 1 an error.",
		Example:     "  agentctl fleet diff edge-1 edge-2",
		Args:        session.ExpectArgs("LABEL1", "LABEL2"),
		Annotations: map[string]string{session.TellsChanges: ""},
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = store.Read(func(ctx context.Context, store kvdbsync.Store, args []string) error {
		sides := [2]map[string][]byte{}
		for i, label := range args {
			var err error
			sides[i], err = declared(ctx, store, label)
			if err != nil {
				return err
			}
			if len(sides[i]) == 0 {
				return session.NotFound("no key is below " + show.Line(configOf(label)))
			}
		}
		changes := compare(sides[0], sides[1])
		if err := f.Write(s.Out, differencesOf(changes), func(out io.Writer) error {
			return show.Changes(out, s.Env, "From "+args[0]+" to "+args[1], changes, 0)
		}); err != nil {
			return err
		}
		if len(changes) > 0 {
			return session.ErrChanges
		}
		return nil
	})
	return cmd
}

// A difference is what JSON has for one key. Before is the value of the first label, After that
// of the second one; nil: it has none.
type difference struct {
	Key    string        `json:"key"`
	Before *wire.Message `json:"before,omitempty"`
	After  *wire.Message `json:"after,omitempty"`
}

// differencesOf returns changes for programs.
func differencesOf(changes []show.Change) []difference {
	out := make([]difference, 0, len(changes))
	for _, c := range changes {
		out = append(out, difference{c.Key, c.Before, c.After})
	}
	return out
}

// configOf returns the prefix of the declared keys of an agent.
func configOf(label string) string { return session.AllAgents + label + "/" + configPrefix }

// declared returns the values that the store declares for an agent, by short key.
func declared(ctx context.Context, store kvdbsync.Store, label string) (map[string][]byte, error) {
	if strings.Contains(label, "/") || label == "" {
		return nil, session.Usagef("%q: expected a label without slash", label)
	}
	pairs, err := store.List(ctx, configOf(label))
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(pairs))
	for _, p := range pairs {
		out[configPrefix+strings.TrimPrefix(p.Key, configOf(label))] = p.Value
	}
	return out, nil
}

// compare returns the changes that turn one configuration into the other, sorted by key.
func compare(from, to map[string][]byte) (out []show.Change) {
	all := maps.Clone(from)
	maps.Copy(all, to)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		before, had := from[key]
		after, has := to[key]
		c := show.Change{Key: key, Symbol: show.Updates, Before: message(key, before, had), After: message(key, after, has)}
		switch {
		case !had:
			c.Symbol = show.Creates
		case !has:
			c.Symbol = show.Deletes
		case equal(key, before, after):
			continue
		}
		out = append(out, c)
	}
	return out
}

// equal reports whether two texts under one key are the same value: the order of fields in the
// text does not matter.
func equal(key string, a, b []byte) bool {
	if string(a) == string(b) {
		return true
	}
	one, err := models.BuiltIn().Decode(key, a)
	other, wrong := models.BuiltIn().Decode(key, b)
	return err == nil && wrong == nil && proto.Equal(one, other)
}

// message returns a value for people, without secrets. A value of a model that agentctl does
// not have, or an invalid one, is nil, as is one that does not exist.
func message(key string, value []byte, exists bool) *wire.Message {
	if !exists {
		return nil
	}
	m, err := models.BuiltIn().Decode(key, value)
	if err != nil {
		return nil
	}
	return wire.MessageOf(models.Redacted(m))
}

// forget returns the command that removes the summary of an agent that is gone for good.
func forget(s *session.Session, store *session.DirectStore) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "forget LABEL...",
		Short: "Removes agents that are gone for good from the table",
		Long: "Forget removes the summaries of agents that have ended or are lost. The other keys of the LABELs stay. An agent that runs is\n" +
			"refused, because it would write its summary again.",
		Example: "  agentctl fleet forget edge-7",
		Args:    session.ExpectSome("LABEL"),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also if the agent seems to run")
	cmd.RunE = store.Read(func(ctx context.Context, store kvdbsync.Store, args []string) error {
		r := reader{s: s, store: store, now: time.Now()}
		all, err := r.agents(ctx, false)
		if err != nil {
			return err
		}
		for _, label := range args {
			at := slices.IndexFunc(all, func(a Agent) bool { return a.Label == label })
			if at < 0 {
				return session.NotFound(show.Line(label) + " has no summary")
			}
			if state := all[at].State; !force && state != stateEnded && state != stateLost {
				return fmt.Errorf("%s is %s, so its agent runs: expected one that is %s or %s", label, state, stateEnded, stateLost)
			}
		}
		for _, label := range args {
			if _, err := store.Delete(ctx, summary.Key(label)); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintln(s.Out, "OK")
		return err
	})
	return cmd
}
