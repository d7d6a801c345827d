package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// A NamedStore is one of the stores that a command reads.
type NamedStore struct {
	Name string
	kvdbsync.Store
}

// WithStores is WithStore for a command that only reads: if the user names no store, it gets all of
// the agent, the one with the highest priority first.
func (s *Session) WithStores(f func(context.Context, []NamedStore, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), s.Timeout)
		all, end := s.storesOfAgent(ctx)
		defer cancel()
		defer end()
		if len(all) < 2 {
			return s.WithStore(func(ctx context.Context, store kvdbsync.Store, args []string) error {
				return f(ctx, []NamedStore{{s.Store, store}}, args)
			})(cmd, args)
		}
		s.ofAgent = true
		return s.fromStore(f(ctx, all, args))
	}
}

// storesOfAgent returns all stores of the agent, unless the user names one or no agent answers. The
// caller calls end.
func (s *Session) storesOfAgent(ctx context.Context) (all []NamedStore, end func()) {
	end = func() {
		for _, one := range all {
			one.Store.(*kvdb.Client).Close()
		}
	}
	if s.Store != "" {
		return nil, end
	}
	c := kvdb.NewClient(s.Socket, "")
	defer c.Close()
	names, err := c.ByPriority(ctx)
	if err != nil {
		return nil, end // WithStore finds out why
	}
	for _, name := range names {
		all = append(all, NamedStore{name, kvdb.NewClient(s.Socket, name)})
	}
	return all, end
}

// writable returns the store of several ones to which a command writes: the one with the highest
// priority that can be written. If there are others, it says so; empty: nobody knows.
func (s *Session) writable(ctx context.Context, c *kvdb.Client) (string, error) {
	names, err := c.Writable(ctx)
	if err != nil || len(names) == 0 {
		return "", err
	}
	if len(names) > 1 {
		fmt.Fprintf(s.Err, "agentctl: of the stores %s, this is %s, which has the highest priority (--store selects another)\n",
			show.Line(strings.Join(names, ", ")), show.Line(names[0]))
	}
	return names[0], nil
}

// A union reads several stores as one. Of a key, the store with the highest priority counts.
type union []NamedStore

// Get implements kvdbsync.Store.
func (u union) Get(ctx context.Context, key string) (value []byte, err error) {
	for _, one := range u {
		value, err = one.Get(ctx, key)
		if !errors.Is(err, kvdbsync.ErrNotFound) {
			return value, err
		}
	}
	return nil, err
}

// List implements kvdbsync.Store.
func (u union) List(ctx context.Context, prefix string) (out []kvdbsync.Pair, err error) {
	known := map[string]bool{}
	for _, one := range u {
		pairs, err := one.List(ctx, prefix)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Name, err)
		}
		for _, p := range pairs {
			if !known[p.Key] {
				known[p.Key] = true
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b kvdbsync.Pair) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// Put implements kvdbsync.Store.
func (union) Put(context.Context, string, []byte) error { return kvdbsync.ErrReadOnly }

// Delete implements kvdbsync.Store.
func (union) Delete(context.Context, string) (bool, error) { return false, kvdbsync.ErrReadOnly }

// Read is With for a command that only reads. It reads all stores of an agent as one, and names them.
func (d *DirectStore) Read(f func(context.Context, kvdbsync.Store, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if d.file != "" {
			return d.With(f)(cmd, args)
		}
		return d.s.WithStores(func(ctx context.Context, all []NamedStore, args []string) error {
			store := all[0].Store
			if len(all) > 1 {
				store = union(all)
				var names []string
				for _, one := range all {
					names = append(names, one.Name)
				}
				fmt.Fprintf(d.s.Err, "agentctl: read from the stores %s (--store selects one)\n", show.Line(strings.Join(names, ", ")))
			}
			return f(ctx, store, args)
		})(cmd, args)
	}
}
