// Package kv has the commands of agentctl that edit the keys of a store: kvdb and import.
package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// Commands returns the commands kvdb and import.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{keys(s), importFile(s)}
}

// keys returns the command that edits the keys of a store.
func keys(s *session.Session) *cobra.Command {
	cmd := session.Group(&cobra.Command{
		Use:     "kvdb",
		Aliases: []string{"kv"},
		Short:   "Lists, gets, puts and deletes keys of a store",
		Long: "Kvdb lists, gets, puts and deletes keys. It reaches etcd directly, and other stores through the socket of the agent that uses them.\n" +
			"If that has several, list and get read all of them, and put and del use the one with the highest priority that can be written, and say so;\n" +
			"--store selects one.\n\n" +
			"A short KEY or PREFIX, which does not begin with " + session.AllAgents + ", is completed: config/... with the label of the agent (with a socket, that of the agent\n" +
			"that listens there); any other begins with a label itself, such as vpp2/config/...",
		Example: "  agentctl kvdb list config/\n  agentctl --store redis kvdb get config/linux/interfaces/v2/interface/veth1",
	})
	cmd.AddCommand(list(s), get(s), put(s), del(s))
	return cmd
}

// list returns the command that lists keys.
func list(s *session.Session) *cobra.Command {
	var keysOnly bool
	cmd := &cobra.Command{
		Use:     "list [PREFIX]",
		Aliases: []string{"ls", "l"},
		Short:   "Prints keys with their values",
		Long: "List prints each key that begins with PREFIX, and its value on the next line. It escapes characters that are not printable\n" +
			"(get prints the bytes of a value). Without PREFIX it prints the keys of all agents.\n" +
			"Of an agent with several stores, it prints the keys of each below a line with its name, unless --store selects one.",
		Example:           "  agentctl kvdb list\n  agentctl kvdb list config/linux/ --keys-only\n  agentctl -e 127.0.0.1:2379 kvdb list",
		ValidArgsFunction: names.CompleteKey(s),
		Args:              session.ExpectArgs("[PREFIX]"),
	}
	cmd.Flags().BoolVar(&keysOnly, "keys-only", false, "leave out the values")
	cmd.RunE = s.WithStores(func(ctx context.Context, stores []session.NamedStore, args []string) (err error) {
		prefix := session.AllAgents
		if len(args) > 0 {
			prefix, err = s.FullKey(ctx, stores[0].Store, args[0])
		}
		if err != nil {
			return err
		}
		found := 0
		for _, store := range stores {
			pairs, err := listOf(ctx, store.Store, prefix, keysOnly)
			if err != nil {
				return err
			}
			found += len(pairs)
			if len(stores) > 1 && len(pairs) > 0 {
				fmt.Fprintf(s.Out, "# %s\n", show.Line(store.Name))
			}
			if err := printPairs(s, pairs, keysOnly); err != nil {
				return err
			}
		}
		if found == 0 {
			fmt.Fprintf(s.Err, "No key begins with %s\n", show.Line(prefix))
		}
		return nil
	})
	return cmd
}

// listOf lists keys. Where only keys are needed and the store is behind a socket, the values
// are not transferred.
func listOf(ctx context.Context, store kvdbsync.Store, prefix string, keysOnly bool) ([]kvdbsync.Pair, error) {
	if c, ok := store.(*kvdb.Client); ok && keysOnly {
		return c.Keys(ctx, prefix)
	}
	return store.List(ctx, prefix)
}

// printPairs prints each pair on two lines, or each key on one.
func printPairs(s *session.Session, pairs []kvdbsync.Pair, keysOnly bool) error {
	var out strings.Builder
	for _, p := range pairs {
		out.WriteString(show.Line(p.Key) + "\n")
		if !keysOnly {
			out.WriteString(show.Line(compactLines(p.Value)) + "\n")
		}
	}
	_, err := io.WriteString(s.Out, out.String())
	return err
}

// compactLines makes JSON that spans several lines one line. Other values are returned
// unchanged.
func compactLines(value []byte) string {
	if !bytes.Contains(value, []byte("\n")) {
		return string(value)
	}
	return show.Compact(value)
}

// get returns the command that prints one value.
func get(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:     "get KEY",
		Aliases: []string{"g"},
		Short:   "Prints the value of a key",
		Long: "Get prints the bytes of the value of KEY, and a line feed. On a terminal, it escapes characters that are not printable.\n" +
			"Of an agent with several stores, it prints the value in each, and names the store on standard error, unless --store selects one.",
		Example:           "  agentctl kvdb get config/linux/interfaces/v2/interface/veth1",
		ValidArgsFunction: names.CompleteKey(s),
		Args:              session.ExpectArgs("KEY"),
		RunE: s.WithStores(func(ctx context.Context, stores []session.NamedStore, args []string) error {
			key, err := s.FullKey(ctx, stores[0].Store, args[0])
			if err != nil {
				return err
			}
			found := false
			for _, store := range stores {
				value, err := store.Get(ctx, key)
				if errors.Is(err, kvdbsync.ErrNotFound) && len(stores) > 1 {
					continue
				}
				if err != nil {
					return err
				}
				found = true
				if show.IsTerminal(s.Out) {
					value = []byte(printable.Text(string(value)))
				}
				if len(stores) > 1 {
					fmt.Fprintf(s.Err, "# %s\n", show.Line(store.Name))
				}
				if _, err := s.Out.Write(append(value, '\n')); err != nil {
					return err
				}
			}
			if !found {
				return fmt.Errorf("%w: %s", kvdbsync.ErrNotFound, key)
			}
			return nil
		}),
	}
}

// put returns the command that writes one value.
func put(s *session.Session) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "put KEY VALUE",
		Aliases: []string{"p"},
		Short:   "Writes a key",
		Long: "Put writes VALUE; - reads it from standard input, without the final line feed. It refuses a value that the agent would refuse.\n" +
			"For that it asks the agent. If no agent answers, it checks the value itself.",
		Example:           "  agentctl kvdb put config/linux/interfaces/v2/interface/lo1 '{\"name\":\"lo1\",\"type\":\"LOOPBACK\"}'\n  agentctl kvdb put config/linux/interfaces/v2/interface/lo1 - < lo1.json",
		ValidArgsFunction: names.CompleteKey(s),
		Args:              session.ExpectArgs("KEY", "VALUE (- reads it from standard input)"),
	}
	cmd.Flags().BoolVar(&force, "force", false, "write the value even if the agent would refuse it")
	cmd.RunE = s.WithStore(func(ctx context.Context, store kvdbsync.Store, args []string) error {
		key, err := s.FullKey(ctx, store, args[0])
		if err != nil {
			return err
		}
		value := []byte(args[1])
		if args[1] == "-" {
			value, err = io.ReadAll(s.In)
			if err != nil {
				return fmt.Errorf("standard input: %w", err)
			}
			value = bytes.TrimSuffix(value, []byte("\n"))
		}
		if !force {
			if err := check(ctx, s, key, value); err != nil {
				return fmt.Errorf("not written: the agent would refuse it (--force writes it anyway): %w", err)
			}
		}
		if err := store.Put(ctx, key, value); err != nil {
			return err
		}
		if !session.IsRead(key) {
			fmt.Fprintf(s.Err, "no agent reads this key: agents read only keys below %sLABEL/config/\n", session.AllAgents)
		}
		return printDone(s, "written", args[0], key)
	})
	return cmd
}

// del returns the command that deletes one key. A missing key is an error, so that
// scripts notice a typing mistake.
func del(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:               "del KEY",
		Aliases:           []string{"d"},
		Short:             "Deletes a key",
		Example:           "  agentctl kvdb del config/linux/interfaces/v2/interface/lo1",
		ValidArgsFunction: names.CompleteKey(s),
		Args:              session.ExpectArgs("KEY"),
		RunE: s.WithStore(func(ctx context.Context, store kvdbsync.Store, args []string) error {
			key, err := s.FullKey(ctx, store, args[0])
			if err != nil {
				return err
			}
			existed, err := store.Delete(ctx, key)
			if err != nil {
				return err
			}
			if !existed {
				return fmt.Errorf("%w: %s", kvdbsync.ErrNotFound, key)
			}
			return printDone(s, "deleted", args[0], key)
		}),
	}
}

// printDone prints OK. For a short key it also names the label that completed it, on
// standard error.
func printDone(s *session.Session, verb, given, key string) error {
	if !session.IsFullKey(given) {
		label, _, _ := strings.Cut(strings.TrimPrefix(key, session.AllAgents), "/")
		fmt.Fprintf(s.Err, "%s for label %s\n", verb, show.Line(label))
	}
	_, err := fmt.Fprintln(s.Out, "OK")
	return err
}
