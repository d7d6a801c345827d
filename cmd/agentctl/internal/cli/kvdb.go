package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// kvdb returns the command that edits the keys of a store.
func (a *app) kvdb() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kvdb",
		Aliases: []string{"kv"},
		Short:   "Lists, gets, puts and deletes keys of a store",
		Long: "Kvdb lists, gets, puts and deletes keys. It reaches etcd directly, and other stores through the socket of the agent that uses them.\n\n" +
			"A short KEY or PREFIX, which does not begin with " + allAgents + ", is completed: config/... with the label of the agent (with a socket, that of the agent\n" +
			"that listens there); any other begins with a label itself, such as vpp2/config/...",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.kvdbList(), a.kvdbGet(), a.kvdbPut(), a.kvdbDel())
	return cmd
}

// kvdbList returns the command that lists keys.
func (a *app) kvdbList() *cobra.Command {
	var keysOnly bool
	cmd := &cobra.Command{
		Use:     "list [PREFIX]",
		Aliases: []string{"ls", "l"},
		Short:   "Prints keys with their values",
		Long: "List prints each key that begins with PREFIX, and its value on the next line. It escapes characters that are not printable\n" +
			"(get prints the bytes of a value). Without PREFIX it prints the keys of all agents.",
		Args: expectArgs("[PREFIX]"),
	}
	cmd.Flags().BoolVar(&keysOnly, "keys-only", false, "leave out the values")
	cmd.RunE = a.withStore(func(ctx context.Context, s kvdbsync.Store, args []string) (err error) {
		prefix := allAgents
		if len(args) > 0 {
			prefix, err = a.fullKey(ctx, s, args[0])
		}
		if err != nil {
			return err
		}
		pairs, err := listOf(ctx, s, prefix, keysOnly)
		if err != nil {
			return err
		}
		if len(pairs) == 0 {
			fmt.Fprintf(a.Err, "No key begins with %s\n", oneLine(prefix))
		}
		return a.print(pairs, keysOnly)
	})
	return cmd
}

// listOf lists keys. Where only keys are needed and the store is behind a socket, the values
// are not transferred.
func listOf(ctx context.Context, s kvdbsync.Store, prefix string, keysOnly bool) ([]kvdbsync.Pair, error) {
	if c, ok := s.(*kvdb.Client); ok && keysOnly {
		return c.Keys(ctx, prefix)
	}
	return s.List(ctx, prefix)
}

// print prints each pair on two lines, or each key on one.
func (a *app) print(pairs []kvdbsync.Pair, keysOnly bool) error {
	var out strings.Builder
	for _, p := range pairs {
		out.WriteString(oneLine(p.Key) + "\n")
		if !keysOnly {
			out.WriteString(oneLine(compactLines(p.Value)) + "\n")
		}
	}
	_, err := io.WriteString(a.Out, out.String())
	return err
}

// compactLines makes JSON that spans several lines one line. Other values are returned
// unchanged.
func compactLines(value []byte) string {
	if !bytes.Contains(value, []byte("\n")) {
		return string(value)
	}
	return compact(value)
}

// kvdbGet returns the command that prints one value.
func (a *app) kvdbGet() *cobra.Command {
	return &cobra.Command{
		Use:     "get KEY",
		Aliases: []string{"g"},
		Short:   "Prints the value of a key",
		Long:    "Get prints the bytes of the value of KEY, and a line feed. On a terminal, it escapes characters that are not printable.",
		Args:    expectArgs("KEY"),
		RunE: a.withStore(func(ctx context.Context, s kvdbsync.Store, args []string) error {
			key, err := a.fullKey(ctx, s, args[0])
			if err != nil {
				return err
			}
			value, err := s.Get(ctx, key)
			if err != nil {
				return err
			}
			if isTerminal(a.Out) {
				value = []byte(printable.Text(string(value)))
			}
			_, err = a.Out.Write(append(value, '\n'))
			return err
		}),
	}
}

// kvdbPut returns the command that writes one value.
func (a *app) kvdbPut() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "put KEY VALUE",
		Aliases: []string{"p"},
		Short:   "Writes a key",
		Long: "Put writes VALUE; - reads it from standard input, without the final line feed. It refuses a value that the agent would refuse.\n" +
			"For that it asks the agent. If no agent answers, it checks the value itself.",
		Args: expectArgs("KEY", "VALUE (- reads it from standard input)"),
	}
	cmd.Flags().BoolVar(&force, "force", false, "write the value even if the agent would refuse it")
	cmd.RunE = a.withStore(func(ctx context.Context, s kvdbsync.Store, args []string) error {
		key, err := a.fullKey(ctx, s, args[0])
		if err != nil {
			return err
		}
		value := []byte(args[1])
		if args[1] == "-" {
			value, err = io.ReadAll(a.In)
			if err != nil {
				return fmt.Errorf("standard input: %w", err)
			}
			value = bytes.TrimSuffix(value, []byte("\n"))
		}
		if !force {
			if err := a.check(ctx, key, value); err != nil {
				return fmt.Errorf("not written: the agent would refuse it (--force writes it anyway): %w", err)
			}
		}
		if err := s.Put(ctx, key, value); err != nil {
			return err
		}
		return a.printDone("written", args[0], key)
	})
	return cmd
}

// kvdbDel returns the command that deletes one key. A missing key is an error, so that
// scripts notice a typing mistake.
func (a *app) kvdbDel() *cobra.Command {
	return &cobra.Command{
		Use:     "del KEY",
		Aliases: []string{"d"},
		Short:   "Deletes a key",
		Args:    expectArgs("KEY"),
		RunE: a.withStore(func(ctx context.Context, s kvdbsync.Store, args []string) error {
			key, err := a.fullKey(ctx, s, args[0])
			if err != nil {
				return err
			}
			existed, err := s.Delete(ctx, key)
			if err != nil {
				return err
			}
			if !existed {
				return fmt.Errorf("%w: %s", kvdbsync.ErrNotFound, key)
			}
			return a.printDone("deleted", args[0], key)
		}),
	}
}

// printDone prints OK. For a short key it also names the label that completed it, on
// standard error.
func (a *app) printDone(verb, given, key string) error {
	if !isFullKey(given) {
		label, _, _ := strings.Cut(strings.TrimPrefix(key, allAgents), "/")
		fmt.Fprintf(a.Err, "%s for label %s\n", verb, oneLine(label))
	}
	_, err := fmt.Fprintln(a.Out, "OK")
	return err
}

// withStore wraps a command that needs a store: it opens the store, applies the timeout, and
// closes the store at the end.
func (a *app) withStore(f func(context.Context, kvdbsync.Store, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), a.Timeout)
		defer cancel()
		s, end, err := a.open(ctx)
		if err != nil {
			return remoteError{a.explainStoreError(err)}
		}
		defer end()
		if err := f(ctx, s, args); err != nil {
			return remoteError{a.explainStoreError(err)}
		}
		return nil
	}
}
