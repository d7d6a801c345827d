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

func (a *app) kvdb() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kvdb",
		Aliases: []string{"kv"},
		Short:   "Lists, gets, puts and deletes keys of a store",
		Long: "Kvdb lists, gets, puts and deletes keys: of etcd directly, of other stores through the socket of the agent that uses them.\n\n" +
			"A key that does not begin with " + allAgents + " is short, and completed with the label of the agent: through a socket, that of the agent there.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.kvdbList(), a.kvdbGet(), a.kvdbPut(), a.kvdbDel())
	return cmd
}

func (a *app) kvdbList() *cobra.Command {
	var keysOnly bool
	cmd := &cobra.Command{
		Use:     "list [PREFIX]",
		Aliases: []string{"ls", "l"},
		Short:   "Prints keys with their values",
		Long: "List prints each key that begins with PREFIX, and its value below, each on one line: characters that are not printable\n" +
			"are escaped (get prints the bytes of a value). A short PREFIX begins with the label of an agent.",
		Args: want("[PREFIX]"),
	}
	cmd.Flags().BoolVar(&keysOnly, "keys-only", false, "leave out the values")
	cmd.RunE = a.run(func(ctx context.Context, s kvdbsync.Store, args []string) error {
		prefix := allAgents
		if len(args) > 0 {
			prefix = wholePrefix(args[0])
		}
		pairs, err := listOf(ctx, s, prefix, keysOnly)
		if err != nil {
			return err
		}
		if rest := strings.TrimPrefix(prefix, allAgents); len(pairs) == 0 && strings.HasPrefix(rest, "config/") {
			fmt.Fprintf(a.Err, "Nothing begins with %s. For those of one agent: %s\n", oneLine(prefix), printable.Word(a.Label+"/"+rest))
		}
		return a.print(pairs, keysOnly)
	})
	return cmd
}

// listOf leaves the values out on the way already, where the store can.
func listOf(ctx context.Context, s kvdbsync.Store, prefix string, keysOnly bool) ([]kvdbsync.Pair, error) {
	if c, ok := s.(*kvdb.Client); ok && keysOnly {
		return c.Keys(ctx, prefix)
	}
	return s.List(ctx, prefix)
}

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

// compactLines brings JSON that has several lines onto one.
func compactLines(value []byte) string {
	if !bytes.Contains(value, []byte("\n")) {
		return string(value)
	}
	return compact(value)
}

func (a *app) kvdbGet() *cobra.Command {
	return &cobra.Command{
		Use:     "get KEY",
		Aliases: []string{"g"},
		Short:   "Prints the value of a key",
		Long:    "Get prints the value of KEY as its bytes are, and a line feed. On a terminal, characters that are not printable are escaped.",
		Args:    want("KEY"),
		RunE: a.run(func(ctx context.Context, s kvdbsync.Store, args []string) error {
			key, err := a.wholeKey(ctx, s, args[0])
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

func (a *app) kvdbPut() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "put KEY VALUE",
		Aliases: []string{"p"},
		Short:   "Writes a key",
		Long:    "Put writes VALUE, or with - what it reads from standard input, without the line feed at its end. What the agent would refuse is not written; an agent that can be reached is asked, others refuse what has no valid form.",
		Args:    want("KEY", "VALUE (- reads it from standard input)"),
	}
	cmd.Flags().BoolVar(&force, "force", false, "write the value even if the agent would refuse it")
	cmd.RunE = a.run(func(ctx context.Context, s kvdbsync.Store, args []string) error {
		key, err := a.wholeKey(ctx, s, args[0])
		if err != nil {
			return err
		}
		value := []byte(args[1])
		if args[1] == "-" {
			if value, err = io.ReadAll(a.In); err != nil {
				return fmt.Errorf("standard input: %w", err)
			}
			value = bytes.TrimSuffix(value, []byte("\n"))
		}
		if !force {
			if err := a.check(ctx, key, value); err != nil {
				return fmt.Errorf("not written, the agent would refuse it (--force writes it all the same): %w", err)
			}
		}
		if err := s.Put(ctx, key, value); err != nil {
			return err
		}
		return a.done("written", args[0], key)
	})
	return cmd
}

func (a *app) kvdbDel() *cobra.Command {
	return &cobra.Command{
		Use:     "del KEY",
		Aliases: []string{"d"},
		Short:   "Deletes a key",
		Args:    want("KEY"),
		RunE: a.run(func(ctx context.Context, s kvdbsync.Store, args []string) error {
			key, err := a.wholeKey(ctx, s, args[0])
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
			return a.done("deleted", args[0], key)
		}),
	}
}

// done says that it is done and, of a short key, to which label.
func (a *app) done(what, said, key string) error {
	if !isWhole(said) {
		label, _, _ := strings.Cut(strings.TrimPrefix(key, allAgents), "/")
		fmt.Fprintf(a.Err, "%s for label %s\n", what, oneLine(label))
	}
	_, err := fmt.Fprintln(a.Out, "OK")
	return err
}

// run is the frame of all commands: a store, and a limit of time.
func (a *app) run(f func(context.Context, kvdbsync.Store, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), a.Timeout)
		defer cancel()
		s, end, err := a.open(ctx)
		if err != nil {
			return remoteError{a.explained(err)}
		}
		defer end()
		if err := f(ctx, s, args); err != nil {
			return remoteError{a.explained(err)}
		}
		return nil
	}
}
