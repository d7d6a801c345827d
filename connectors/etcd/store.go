package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A Client reads and writes an etcd cluster: a kvdbsync.Writer. Any goroutine may call its
// methods. It reconnects by itself, and authenticates again when its token has expired.
type Client struct {
	client  *client
	timeout time.Duration
	bounds  kvdbsync.Bounds
}

// Dial returns a Client, to be closed. With a password it authenticates; otherwise the
// first request finds out whether the server can be reached.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	client, err := newClient(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Client{client: client, timeout: cfg.OperationTimeout, bounds: cfg.Bounds}, nil
}

// Dial returns a Client with the configuration of the connector, to be closed. Its keys
// belong to no session.
func (c *Connector) Dial(ctx context.Context) (*Client, error) { return Dial(ctx, c.cfg) }

// Close ends the connection.
func (c *Client) Close() error {
	err := c.client.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Get implements kvdbsync.Store.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, end := c.client.line.bounded(ctx, c.timeout)
	defer end()
	answer, err := c.client.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading %s in etcd: %w", key, because(ctx, err))
	}
	if len(answer.Kvs) == 0 {
		return nil, fmt.Errorf("%s: %w", key, kvdbsync.ErrNotFound)
	}
	return only(key, answer.Kvs[0], c.bounds)
}

// only returns the value of a key that was requested alone.
func only(key string, kv *mvccpb.KeyValue, bounds kvdbsync.Bounds) ([]byte, error) {
	if kv == nil {
		return nil, fmt.Errorf("%s: %w: it has no key", key, ErrNotEtcd)
	}
	e := putEvent(kv, bounds)
	if e.Err != nil {
		return nil, fmt.Errorf("%s: %w", key, e.Err)
	}
	return e.Value, nil
}

// List implements kvdbsync.Store.
func (c *Client) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	var pairs []kvdbsync.Pair
	tally := kvdbsync.NewTally(c.bounds)
	emit := func(b kvdbsync.Batch) error {
		for _, e := range b.Events {
			if e.Err != nil {
				return fmt.Errorf("%s: %w", e.Key, e.Err)
			}
			if err := tally.Pair(e.Key, len(e.Value)); err != nil {
				return err
			}
			pairs = append(pairs, kvdbsync.Pair{Key: e.Key, Value: e.Value})
		}
		return nil
	}
	w := watch{client: c.client, bounds: c.bounds, log: slog.New(slog.DiscardHandler), timeout: c.timeout, prefix: prefix, emit: emit}
	last, err := w.list(ctx)
	if err == nil {
		err = emit(last)
	}
	if err != nil {
		return nil, err
	}
	return pairs, nil
}

// Put implements kvdbsync.Store.
func (c *Client) Put(ctx context.Context, key string, value []byte) error {
	return c.Apply(ctx, []kvdbsync.Pair{{Key: key, Value: append([]byte{}, value...)}})
}

// Delete implements kvdbsync.Store.
func (c *Client) Delete(ctx context.Context, key string) (existed bool, err error) {
	ctx, end := c.client.line.bounded(ctx, c.timeout)
	defer end()
	existed, err = c.remove(ctx, key)
	if err != nil {
		return false, fmt.Errorf("deleting %s in etcd: %w", key, because(ctx, err))
	}
	return existed, nil
}

// PutIfAbsent implements kvdbsync.Writer.
func (c *Client) PutIfAbsent(ctx context.Context, key string, value []byte) (stored bool, err error) {
	return c.swap(ctx, key, nil, append([]byte{}, value...), clientv3.NoLease)
}

// PutIfSame implements kvdbsync.Writer. A missing key is never equal.
func (c *Client) PutIfSame(ctx context.Context, key string, old, value []byte) (stored bool, err error) {
	return c.swap(ctx, key, append([]byte{}, old...), append([]byte{}, value...), clientv3.NoLease)
}

// Apply implements kvdbsync.Writer, several changes in one transaction. By default etcd accepts 128
// changes and 1.5 MiB at once.
func (c *Client) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	return c.change(ctx, changes, clientv3.NoLease)
}

// change makes changes, under a lease.
func (c *Client) change(ctx context.Context, changes []kvdbsync.Pair, lease clientv3.LeaseID) (err error) {
	if len(changes) == 0 {
		return nil
	}
	ctx, end := c.client.line.bounded(ctx, c.timeout)
	defer end()
	switch one := changes[0]; {
	case len(changes) == 1 && one.Value == nil:
		_, err = c.remove(ctx, one.Key)
	case len(changes) == 1:
		_, err = c.client.Put(ctx, one.Key, string(one.Value), clientv3.WithLease(lease))
	default:
		ops := make([]clientv3.Op, len(changes))
		for i, p := range changes {
			ops[i] = clientv3.OpDelete(p.Key)
			if p.Value != nil {
				ops[i] = clientv3.OpPut(p.Key, string(p.Value), clientv3.WithLease(lease))
			}
		}
		_, err = c.client.Txn(ctx).Then(ops...).Commit()
	}
	if err != nil {
		return refused(changes, because(ctx, err))
	}
	return nil
}

// refused returns an error that names the refused changes and the most likely cause among
// them.
func refused(changes []kvdbsync.Pair, err error) error {
	largest := slices.MaxFunc(changes, func(a, b kvdbsync.Pair) int { return cmp.Compare(len(a.Value), len(b.Value)) })
	what := largest.Key
	if n := len(changes); n > 1 {
		what = fmt.Sprintf("%d keys, of which %s is the largest,", n, largest.Key)
	}
	switch {
	case errors.Is(err, rpctypes.ErrTooManyOps):
		return fmt.Errorf("writing %s in etcd: %w: %d changes: expected at most the server's --max-txn-ops", what, kvdbsync.ErrTooLarge, len(changes))
	case errors.Is(err, rpctypes.ErrRequestTooLarge), status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max"):
		return fmt.Errorf("writing %s in etcd: %w: its value has %d bytes: expected at most the server's --max-request-bytes, 1.5 MiB by default", what, kvdbsync.ErrTooLarge, len(largest.Value))
	}
	return fmt.Errorf("writing %s in etcd: %w", what, err)
}
