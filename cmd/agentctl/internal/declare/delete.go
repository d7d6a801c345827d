package declare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// remove returns the command that withdraws values.
func remove(s *session.Session) *cobra.Command {
	c := change{Session: s}
	cmd := &cobra.Command{
		Use:   "delete VALUE|FILE...",
		Short: "Withdraws values where they are kept, or those of files",
		Long: "Delete prints what the removal changes, and removes each VALUE where it is kept: from the store or the data source that holds it. If\n" +
			"several hold it, --source chooses one. VALUE is a key or a name.\n\n" +
			"With FILEs it is the inverse of apply: it withdraws the values that they name from agentctl, or with --source or --store from there.\n" +
			"Only the fields that make its key matter in a value. FILE is what ends with .yaml, .yml, .json or a slash, begins with ./ or ../, or is\n" +
			"- for standard input. What another source declares too stays, as that one has it, and a warning says so.\n\n" +
			storeHelp,
		Example:           "  agentctl delete veth1\n  agentctl delete network.yaml\n  agentctl delete routes.yaml --store etcd\n  agentctl delete veth1 --source redis --wait",
		ValidArgsFunction: completeValueOrFile(s),
		SuggestFor:        []string{"remove", "rm", "unset"},
		Args:              valuesOrFiles,
	}
	c.sourceFlag(cmd, "remove the values from this store or data source")
	cmd.Flags().BoolVar(&c.wait, "wait", false, "wait until the values are removed")
	ofFiles := s.WithAgentUntil(answerTime, c.removeFiles)
	inStore := s.WithStore(c.removeInStore)
	ofValues := s.WithAgentUntil(answerTime, c.removeValues)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		stored := session.IntoStore(cmd)
		switch {
		case stored && c.source != "" && isFile(args[0]):
			return session.Usagef("--source is not possible with --store")
		case isFile(args[0]) && stored:
			return inStore(cmd, args)
		case isFile(args[0]):
			return ofFiles(cmd, args)
		case cmd.Flags().Changed("store"):
			return session.Usagef("--store is for FILEs: expected --source for a VALUE, or agentctl kvdb del for a key of a store without its agent")
		}
		return ofValues(cmd, args)
	}
	return cmd
}

// isFile tells a file from a value. It looks at no file, so that the meaning of a command line does not depend on a folder.
func isFile(arg string) bool {
	return arg == "-" || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg)) ||
		strings.HasSuffix(arg, "/") && !session.IsKey(arg) || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../")
}

// valuesOrFiles checks that all arguments are of one kind.
func valuesOrFiles(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("VALUE or FILE is missing")
	}
	for _, arg := range args[1:] {
		if isFile(arg) != isFile(args[0]) {
			return fmt.Errorf("%q and %q: expected only VALUEs or only FILEs", args[0], arg)
		}
	}
	return nil
}

// completeValueOrFile returns a completion with names of values, and with files where nothing else fits.
func completeValueOrFile(s *session.Session) cobra.CompletionFunc {
	values := names.Each(names.CompleteValue(s))
	return func(cmd *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && isFile(args[0]) || isFile(given) {
			return names.CompleteFile(cmd, args, given)
		}
		words, _ := values(cmd, args, given)
		return words, cobra.ShellCompDirectiveDefault
	}
}

// removeValues removes values where they are kept, one source after the other.
func (c *change) removeValues(ctx context.Context, args []string) error {
	deadline := time.Now().Add(c.Timeout)
	keys, err := names.Wholes(ctx, c.Session, args)
	if err != nil {
		return err
	}
	sources, of, err := c.keepers(ctx, keys)
	if err != nil {
		return err
	}
	for _, c.source = range sources {
		if err := c.withdraw("VALUE", of[c.source]); err != nil {
			return err
		}
		if err := c.perform(ctx, of[c.source][0], deadline); err != nil {
			return err
		}
	}
	return nil
}

// keepers returns the sources that hold the keys, and the keys of each. A key that several hold needs --source.
func (c *change) keepers(ctx context.Context, keys []string) (sources []string, of map[string][]string, err error) {
	of = map[string][]string{}
	for _, key := range keys {
		held, err := c.holders(ctx, key)
		if err != nil {
			return nil, nil, err
		}
		source, err := c.only(key, held)
		if err != nil {
			return nil, nil, err
		}
		if of[source] == nil {
			sources = append(sources, source)
		}
		if !slices.Contains(of[source], key) {
			of[source] = append(of[source], key)
		}
	}
	return sources, of, nil
}

// only returns the source from which a key is removed: that of --source, or the only one that holds it.
func (c *change) only(key string, held []wire.Declaration) (string, error) {
	var all []string
	for _, d := range held {
		all = append(all, show.Line(d.Source))
	}
	switch text := show.Line(key); {
	case c.source != "" && slices.ContainsFunc(held, func(d wire.Declaration) bool { return d.Source == c.source }):
		return c.source, nil
	case len(held) == 0:
		return "", session.NotFound("nobody declares " + text + ", so nothing can be withdrawn")
	case c.source != "":
		return "", session.NotFound(fmt.Sprintf("%s does not declare %s, but %s does", show.Line(c.source), text, strings.Join(all, ", ")))
	case len(held) > 1:
		return "", session.Usagef("%s is declared by %s: expected --source with one of them", text, strings.Join(all, ", "))
	}
	return held[0].Source, nil
}

// withdraw makes the removal of keys the text of the change.
func (c *change) withdraw(name string, keys []string) error {
	var pairs []pair
	for _, key := range keys {
		pairs = append(pairs, pair{Key: key})
	}
	c.removed = len(pairs)
	return c.use(name, pairs)
}

// leaveOut makes a wait leave out the keys whose values other sources keep: they are not removed.
func (c *change) leaveOut(p wire.Plan) error {
	if c.removed == 0 {
		return nil
	}
	var pairs []pair
	if err := json.Unmarshal(c.text, &pairs); err != nil {
		return err
	}
	pairs = slices.DeleteFunc(pairs, func(one pair) bool {
		return slices.ContainsFunc(p.Warnings, func(w wire.Warning) bool { return w.Key == one.Key && w.KeptBy != "" })
	})
	var err error
	c.rest, err = json.Marshal(pairs)
	return err
}

// removeFiles withdraws the values of files from a layer or, with --source, from a store.
func (c *change) removeFiles(ctx context.Context, args []string) error {
	deadline := time.Now().Add(c.Timeout)
	keys, err := c.keysOf(ctx, args)
	if err != nil {
		return err
	}
	if c.source == "" {
		c.source = session.Layer
	}
	if keys, err = c.onlyHeld(ctx, keys); err != nil {
		return err
	}
	if err := c.withdraw(args[0], keys); err != nil {
		return err
	}
	return c.perform(ctx, keys[0], deadline)
}

// removeInStore removes the values of files from a store, also without an agent.
func (c *change) removeInStore(ctx context.Context, store kvdbsync.Store, args []string) error {
	deadline := time.Now().Add(c.Timeout)
	c.source = c.Store
	keys, err := c.keysOf(ctx, args)
	if err != nil {
		return err
	}
	if err := c.withdraw(args[0], keys); err != nil {
		return err
	}
	return c.write(ctx, store, c.FullKey, deadline)
}

// keysOf returns the keys of the values in files, each once.
func (c *change) keysOf(ctx context.Context, args []string) (keys []string, err error) {
	if err := c.read(args); err != nil {
		return nil, err
	}
	var values []documents.Value
	err = c.UseModels(ctx, func(known *models.Registry) (err error) {
		values, err = c.from.Keys(known)
		return err
	})
	if errors.Is(err, documents.ErrIgnored) {
		fmt.Fprintln(c.Err, show.Broken(c.Err, "agentctl: warning: "+err.Error(), 2))
		err = nil
	}
	known := map[string]bool{}
	for _, v := range values {
		if !known[v.Key] {
			known[v.Key] = true
			keys = append(keys, v.Key)
		}
	}
	switch {
	case err != nil:
		return nil, session.Lines(err)
	case len(keys) == 0:
		return nil, errors.New("the files have no values")
	}
	return keys, nil
}

// onlyHeld returns the keys that the source holds, and names the others on standard error. If it holds none, that is an error:
// the files, or the source, are not those that were meant.
func (c *change) onlyHeld(ctx context.Context, keys []string) (held []string, err error) {
	var all []wire.Declaration
	if err := c.Get(ctx, "/sources", url.Values{"key-prefix": {"config/"}}, &all); err != nil {
		return nil, err
	}
	by := map[string][]string{}
	for _, d := range all {
		by[d.Key] = append(by[d.Key], d.Source)
	}
	var notes []string
	for _, key := range keys {
		switch {
		case slices.Contains(by[key], c.source):
			held = append(held, key)
		case len(by[key]) > 0:
			notes = append(notes, fmt.Sprintf("%s is declared by %s", key, strings.Join(by[key], ", ")))
		default:
			notes = append(notes, "nobody declares "+key)
		}
	}
	for _, text := range notes {
		fmt.Fprintln(c.Err, show.Broken(c.Err, fmt.Sprintf("agentctl: not by %s: %s", show.Line(c.source), show.Line(text)), 2))
	}
	if len(held) == 0 {
		return nil, session.NotFound("nothing was changed: " + show.Line(c.source) + " declares none of these values (--source names another)")
	}
	return held, nil
}
