package etcd

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Beside implements kvdbsync.Browser with a client of its own, as each watch has one.
func (c *Connector) Beside(ctx context.Context, prefix string, known []string) (names []string, err error) {
	client, err := Dial(ctx, c.cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return client.Beside(ctx, prefix, known)
}

// Beside implements kvdbsync.Browser. It asks for one key per range, because etcd counts all
// keys of a range, also beyond the limit.
func (c *Client) Beside(ctx context.Context, prefix string, known []string) ([]string, error) {
	return kvdbsync.Leap(prefix, known, func(from, to string) (string, error) {
		ctx, end := c.client.line.bounded(ctx, c.timeout)
		defer end()
		answer, err := c.client.Get(ctx, from, clientv3.WithRange(to), clientv3.WithLimit(1), clientv3.WithKeysOnly(), clientv3.WithSerializable())
		if err == nil {
			err = checkPage(answer, from, to)
		}
		if err != nil {
			return "", fmt.Errorf("looking for keys beside %s in etcd: %w", prefix, because(ctx, err))
		}
		if len(answer.Kvs) == 0 {
			return "", nil
		}
		return string(answer.Kvs[0].Key), nil
	})
}
