package agent

import (
	"context"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/kvdbsync"
)

// An etcdStore is watched, published to, and edited with agentctl. It connects for each request: with
// a password, connecting asks the server, which may be down when the agent starts.
type etcdStore struct{ *etcd.Connector }

var _ kvdbsync.Writer = etcdStore{}

// with calls do with a client that ends afterwards.
func (e etcdStore) with(ctx context.Context, do func(*etcd.Client) error) error {
	c, err := e.Dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// Get implements kvdbsync.Store.
func (e etcdStore) Get(ctx context.Context, key string) (value []byte, err error) {
	err = e.with(ctx, func(c *etcd.Client) (err error) {
		value, err = c.Get(ctx, key)
		return err
	})
	return value, err
}

// List implements kvdbsync.Store.
func (e etcdStore) List(ctx context.Context, prefix string) (pairs []kvdbsync.Pair, err error) {
	err = e.with(ctx, func(c *etcd.Client) (err error) {
		pairs, err = c.List(ctx, prefix)
		return err
	})
	return pairs, err
}

// Put implements kvdbsync.Store.
func (e etcdStore) Put(ctx context.Context, key string, value []byte) error {
	return e.with(ctx, func(c *etcd.Client) error { return c.Put(ctx, key, value) })
}

// Delete implements kvdbsync.Store.
func (e etcdStore) Delete(ctx context.Context, key string) (existed bool, err error) {
	err = e.with(ctx, func(c *etcd.Client) (err error) {
		existed, err = c.Delete(ctx, key)
		return err
	})
	return existed, err
}

// Apply makes all changes at once, or none.
func (e etcdStore) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	return e.with(ctx, func(c *etcd.Client) error { return c.Apply(ctx, changes) })
}

// PutIfSame compares and writes in one step.
func (e etcdStore) PutIfSame(ctx context.Context, key string, old, value []byte) (stored bool, err error) {
	err = e.with(ctx, func(c *etcd.Client) (err error) {
		stored, err = c.PutIfSame(ctx, key, old, value)
		return err
	})
	return stored, err
}

// PutIfAbsent implements kvdbsync.Writer, for programs that have an agent.
func (e etcdStore) PutIfAbsent(ctx context.Context, key string, value []byte) (stored bool, err error) {
	err = e.with(ctx, func(c *etcd.Client) (err error) {
		stored, err = c.PutIfAbsent(ctx, key, value)
		return err
	})
	return stored, err
}
