package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// An EditableStore is a store whose values commands change one by one and several at once.
type EditableStore interface {
	kvdbsync.Store
	PutIfSame(ctx context.Context, key string, old, value []byte) (stored bool, err error)
	Apply(ctx context.Context, changes []kvdbsync.Pair) error
}

// OpenSource connects to the store that the agent names as a source: through the agent's socket or, if that does not have
// it, to the etcd of the settings. The error is kvdb.ErrNoStore for a source that is no store, and kvdb.ErrNoAgent if the
// socket cannot tell. Commands within WithAgent may call it, after a request to the agent. The caller calls end.
func (s *Session) OpenSource(ctx context.Context, source string) (store EditableStore, end func(), err error) {
	c := kvdb.NewClient(s.Socket, source)
	label, err := c.Label(ctx)
	if err == nil && label != "" && s.agentLabel != "" && label != s.agentLabel {
		err = fmt.Errorf("%w: at %s is the one with the label %s", kvdb.ErrNoAgent, s.Socket, show.Line(label))
	}
	var stores []string
	if err == nil {
		stores, err = c.Stores(ctx)
	}
	if slices.Contains(stores, source) {
		return c, c.Close, nil
	}
	c.Close()
	switch {
	case source == "etcd":
		return s.openEtcd(ctx)
	case err == nil:
		err = kvdb.ErrNoStore
	}
	return nil, nil, err
}

// openEtcd connects to the etcd of the settings. The caller calls end.
func (s *Session) openEtcd(ctx context.Context) (store *etcd.Client, end func(), err error) {
	cfg := s.etcd()
	if err := cfg.Validate(); err != nil {
		return nil, nil, fmt.Errorf("etcd: %w", err)
	}
	c, err := etcd.Dial(ctx, cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("etcd: %w", err)
	}
	return c, func() { c.Close() }, nil
}

// KeyInStore returns the complete key of a value of the agent that has answered.
func (s *Session) KeyInStore(ctx context.Context, store kvdbsync.Store, key string) (string, error) {
	if _, behind := store.(*kvdb.Client); !behind && s.agentLabel != "" {
		return withLabel(key, s.agentLabel), nil
	}
	return s.FullKey(ctx, store, key)
}
