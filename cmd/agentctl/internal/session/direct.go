package session

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A DirectStore is the store of a command that reads the keys of many agents. Such a command
// runs on the host of an operator, where no agent has a socket.
type DirectStore struct {
	s    *Session
	file string // of the store; empty: as WithStore
}

// DirectStoreFlag adds the flag --store-config to cmd and the commands below it.
func (s *Session) DirectStoreFlag(cmd *cobra.Command) *DirectStore {
	d := &DirectStore{s: s}
	cmd.PersistentFlags().StringVar(&d.file, "store-config", "", "configuration file of the store, as agents have it, such as redis.conf; --store names its kind: etcd, redis or consul.\nWithout it, the store is reached as by kvdb")
	return d
}

// With wraps a command that needs the store, as Session.WithStore does.
func (d *DirectStore) With(f func(context.Context, kvdbsync.Store, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if d.file == "" {
			return d.s.WithStore(f)(cmd, args)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), d.s.Timeout)
		defer cancel()
		store, end, err := d.open(ctx)
		if err != nil {
			return err
		}
		defer end()
		err = f(ctx, store, args)
		if isDone(err) {
			return err
		}
		return RemoteError{err}
	}
}

// open connects to the store of the file. The caller calls end after use.
func (d *DirectStore) open(ctx context.Context) (store kvdbsync.Store, end func(), err error) {
	switch d.s.Store {
	case "etcd":
		return opened(d, func(c etcd.Config) (*etcd.Client, error) { return etcd.Dial(ctx, c) })
	case "redis":
		return opened(d, func(c redis.Config) (*redis.Client, error) { return redis.Dial(ctx, c) })
	case "consul":
		return opened(d, consul.Dial)
	}
	return nil, nil, Usagef("--store-config needs the kind of the store: expected --store with etcd, redis or consul")
}

// opened reads the file into the configuration C of a connector, and connects.
func opened[C any, S interface {
	kvdbsync.Store
	Close() error
}](d *DirectStore, dial func(C) (S, error)) (store kvdbsync.Store, end func(), err error) {
	var cfg C
	unknown, err := config.Load(d.file, &cfg)
	if err != nil {
		return nil, nil, Usagef("--store-config: %w", err)
	}
	for _, u := range unknown {
		fmt.Fprintln(d.s.Err, "agentctl:", show.Line(u.String()))
	}
	client, err := dial(cfg)
	if err != nil {
		return nil, nil, RemoteError{fmt.Errorf("%s: %w", d.s.Store, err)}
	}
	return client, func() { _ = client.Close() }, nil
}
