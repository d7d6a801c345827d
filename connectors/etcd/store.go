package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A Client reads and writes an etcd cluster: a kvdbsync.Store. Its methods may be
// called at the same time. It reconnects by itself, and authenticates again when
// its token has run out.
type Client struct {
	client  *clientv3.Client
	timeout time.Duration
}

// Dial returns a Client, to be closed. Where there is a password it authenticates;
// otherwise the first request finds out whether the server is there.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	client, err := newClient(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Client{client: client, timeout: cfg.OperationTimeout}, nil
}

// Close ends the connection.
func (c *Client) Close() error {
	if err := c.client.Close(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Get implements kvdbsync.Store.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.client.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading %s in etcd: %w", key, err)
	}
	if len(answer.Kvs) == 0 {
		return nil, fmt.Errorf("%s: %w", key, kvdbsync.ErrNotFound)
	}
	return putEvent(answer.Kvs[0]).Value, nil
}

// List implements kvdbsync.Store.
func (c *Client) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	var pairs []kvdbsync.Pair
	w := watch{client: c.client, timeout: c.timeout, prefix: prefix, emit: func(b kvdbsync.Batch) error {
		for _, e := range b.Events {
			pairs = append(pairs, kvdbsync.Pair{Key: e.Key, Value: e.Value})
		}
		return nil
	}}
	if err := w.list(ctx); err != nil {
		return nil, err
	}
	return pairs, nil
}

// Put implements kvdbsync.Store.
func (c *Client) Put(ctx context.Context, key string, value []byte) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if _, err := c.client.Put(ctx, key, string(value)); err != nil {
		return fmt.Errorf("writing %s in etcd: %w", key, err)
	}
	return nil
}

// Delete implements kvdbsync.Store.
func (c *Client) Delete(ctx context.Context, key string) (existed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.client.Delete(ctx, key)
	if err != nil {
		return false, fmt.Errorf("deleting %s in etcd: %w", key, err)
	}
	return answer.Deleted > 0, nil
}
