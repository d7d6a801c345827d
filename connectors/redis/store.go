package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/connectors/redis/internal/paging"
	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A Client reads and writes Redis: a kvdbsync.Writer. Its methods are safe for concurrent
// use. It reconnects automatically, and follows the master.
type Client struct {
	client goredis.UniversalClient
	// Reads any keys; in a Cluster one by one, because MGET takes keys of one slot only.
	read   reader
	size   paging.Size
	bounds kvdbsync.Bounds
	reload func(context.Context) // reads the Cluster's slots again; nil: not a Cluster
	// Calls do for each master, concurrently. A panic of do is an error.
	each func(ctx context.Context, do func(context.Context, *goredis.Client) error) error
}

// Dial returns a Client; the caller must close it. The first request connects.
func Dial(_ context.Context, cfg Config) (*Client, error) {
	a, err := cfg.withDefaults().access()
	if err != nil {
		return nil, err
	}
	dial := limiting(dialer(context.Background(), a.TLS, a.ReadTimeout), a.Bounds, false)
	if a.cluster() {
		o := a.toCluster(dial)
		o.PoolSize, o.PoolTimeout, o.ConnMaxIdleTime = a.Pool.MaxConnections, a.Pool.BusyTimeout, a.Pool.IdleTimeout
		o.ReadOnly, o.RouteByLatency, o.ContextTimeoutEnabled = a.ReadReplicas, a.RouteByLatency, true
		client := goredis.NewClusterClient(o)
		each := func(ctx context.Context, do func(context.Context, *goredis.Client) error) error {
			return a.eachMaster(ctx, client, dial, do)
		}
		return &Client{client: client, read: oneByOne(client, a.Bounds), bounds: a.Bounds, reload: client.ReloadState, each: each}, nil
	}
	client := a.dialOne(dial)
	each := func(ctx context.Context, do func(context.Context, *goredis.Client) error) error {
		return guard.Run(func() error { return do(ctx, client) })
	}
	return &Client{client: client, read: atOnce(client, a.Bounds), bounds: a.Bounds, each: each}, nil
}

// dialOne returns a client for one server, also for a master with Sentinels. It does not
// use the library's Sentinel client, which trusts every message of the Sentinels and
// starts goroutines. A demoted master answers READONLY, or its connections break. Then the
// library opens others, and the client asks the Sentinels again.
func (a access) dialOne(dial dialFunc) *goredis.Client {
	o := a.node(a.Endpoint, dial)
	if a.sentinels() {
		o.Addr = a.where()
		o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			master, err := a.namedBySentinels(ctx)
			if err != nil {
				return nil, err
			}
			return dial(ctx, network, master)
		}
	}
	o.PoolSize, o.PoolTimeout, o.ConnMaxIdleTime = a.Pool.MaxConnections, a.Pool.BusyTimeout, a.Pool.IdleTimeout
	o.ContextTimeoutEnabled, o.MaxRetries = true, 0 // 0: the library's default, 3
	return goredis.NewClient(o)
}

// noted returns err. If err may mean that a master has died, noted makes the next request
// find the new master. The library alone would need up to a minute.
func (c *Client) noted(ctx context.Context, err error) error {
	if c.reload != nil && err != nil && !errors.Is(err, goredis.Nil) {
		c.reload(ctx)
	}
	return err
}

// Close closes the connections.
func (c *Client) Close() error { return c.client.Close() }

// Get implements kvdbsync.Store.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	text, err := c.client.Get(ctx, key).Result()
	switch err := c.noted(ctx, err); {
	case errors.Is(err, goredis.Nil):
		return nil, fmt.Errorf("%s: %w", key, kvdbsync.ErrNotFound)
	case goredis.HasErrorPrefix(err, "WRONGTYPE"):
		return nil, fmt.Errorf("%s: %w", key, ErrNotString)
	case err != nil:
		return nil, fmt.Errorf("reading %s in redis: %w", key, err)
	}
	return whole(key, text, c.bounds)
}

// List implements kvdbsync.Store. It omits keys that hold no string. A value that is too
// large is an error.
func (c *Client) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	l := listing{bounds: c.bounds, tally: kvdbsync.NewTally(c.bounds), read: newPager(c.read, &c.size), pairs: map[string][]byte{}}
	err := c.each(ctx, func(ctx context.Context, master *goredis.Client) error {
		return scan(ctx, master, prefix, c.bounds, func(keys []string) error { return l.add(ctx, keys) })
	})
	if err := c.noted(ctx, err); err != nil {
		return nil, err
	}
	return l.sorted(), nil
}

// A listing collects pairs from several masters concurrently.
type listing struct {
	bounds kvdbsync.Bounds
	mu     sync.Mutex // guards the fields below; held while keys are read
	read   *pager
	tally  kvdbsync.Tally
	pairs  map[string][]byte
}

// add reads the values of some keys. SCAN may return a key twice, so pairs are a map.
func (l *listing) add(ctx context.Context, keys []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read.each(ctx, keys, func(events []kvdbsync.Event) error {
		for _, e := range events {
			if err := l.tally.Pair(e.Key, len(e.Value)); err != nil {
				return err
			}
			if errors.Is(e.Err, kvdbsync.ErrTooMuch) {
				return fmt.Errorf("%s: %w", e.Key, e.Err)
			}
			if e.Value != nil {
				l.pairs[e.Key] = e.Value
			}
		}
		return nil
	})
}

// sorted returns the pairs in the order of their keys, as the contract requires.
func (l *listing) sorted() (pairs []kvdbsync.Pair) {
	for key, value := range l.pairs {
		pairs = append(pairs, kvdbsync.Pair{Key: key, Value: value})
	}
	slices.SortFunc(pairs, func(a, b kvdbsync.Pair) int { return strings.Compare(a.Key, b.Key) })
	return pairs
}

// Put implements kvdbsync.Store.
func (c *Client) Put(ctx context.Context, key string, value []byte) error {
	cmd := goredis.NewStatusCmd(ctx, "set", key, notNil(value))
	if err := c.noted(ctx, c.client.Process(ctx, onlyOnce{cmd})); err != nil {
		return fmt.Errorf("writing %s in redis: %w", key, err)
	}
	return nil
}

// Delete implements kvdbsync.Store.
func (c *Client) Delete(ctx context.Context, key string) (existed bool, err error) {
	cmd := goredis.NewIntCmd(ctx, "del", key)
	if err := c.noted(ctx, c.client.Process(ctx, onlyOnce{cmd})); err != nil {
		return false, fmt.Errorf("deleting %s in redis: %w", key, err)
	}
	return cmd.Val() > 0, nil
}
