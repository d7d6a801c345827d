package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator/publish"
)

// summarizers returns a task for each store that receives the agent's summary. usual has the
// fields that all of them share.
func (s stores) summarizers(names []string, usual publish.Summaries) (out []Task) {
	for _, name := range names {
		at := slices.IndexFunc(s, func(one store) bool { return one.name == name })
		if at < 0 {
			usual.Log.Warn("cannot publish the summary: the store is not configured", "source", name)
			continue
		}
		into := usual
		into.Name, into.Open = name, s[at].opener()
		if into.Open == nil {
			usual.Log.Warn("cannot publish the summary: the store does not support it", "source", name)
			continue
		}
		out = append(out, Task{"summary into " + name, into.Run})
	}
	return out
}

// opener returns how keys without a session are written into the store; nil: they cannot be.
// Etcd needs a connection for that. Only agents that publish a summary have it.
func (s *store) opener() func(context.Context) (kvdbsync.Store, func(), error) {
	switch c := s.connector.(type) {
	case etcdStore:
		return func(ctx context.Context) (kvdbsync.Store, func(), error) {
			client, err := c.Dial(context.WithoutCancel(ctx)) // it also writes that the agent has ended
			if err != nil {
				return nil, nil, err
			}
			return ownStore{client, s.keeper}, func() { _ = client.Close() }, nil
		}
	case kvdbsync.Store:
		return func(context.Context) (kvdbsync.Store, func(), error) { return ownStore{c, s.keeper}, func() {}, nil }
	}
	return nil
}

// An ownStore is written only while the label is not another agent's there.
type ownStore struct {
	kvdbsync.Store
	keeper *owner.Keeper // nil: the store has no leases
}

// Put implements kvdbsync.Store.
func (o ownStore) Put(ctx context.Context, key string, value []byte) error {
	if o.keeper != nil {
		if why := o.keeper.Withhold(); errors.Is(why, owner.ErrTaken) {
			return why
		}
	}
	return o.Store.Put(ctx, key, value)
}
