package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/kvdbsync"
)

// PutIfAbsent implements kvdbsync.Writer.
func (c *Client) PutIfAbsent(ctx context.Context, key string, value []byte) (stored bool, err error) {
	cmd := goredis.NewBoolCmd(ctx, "setnx", key, notNil(value))
	if err := c.noted(ctx, c.client.Process(ctx, onlyOnce{cmd})); err != nil {
		return false, fmt.Errorf("writing %s in redis: %w", key, err)
	}
	return cmd.Val(), nil
}

// onlyOnce disables retries after a lost answer. The first attempt may have been executed, and
// another client may have written the key since: a second attempt would undo that, and would
// report the key that the first one wrote.
type onlyOnce struct{ goredis.Cmder }

// NoRetry keeps the client from repeating the command: if its answer was lost, it may have
// been executed.
func (onlyOnce) NoRetry() bool { return true }

// PutIfSame implements kvdbsync.Writer. WATCH makes EXEC fail if another client has written the key
// since it was read. That client may have written the same bytes, so the key is then read again.
func (c *Client) PutIfSame(ctx context.Context, key string, old, value []byte) (stored bool, err error) {
	for {
		stored, err = c.replace(ctx, key, old, value)
		if !errors.Is(err, goredis.TxFailedErr) {
			break
		}
	}
	if c.noted(ctx, err) != nil {
		return false, fmt.Errorf("writing %s in redis: %w", key, err)
	}
	return stored, nil
}

// replace tries PutIfSame once. The error is TxFailedErr if another client was faster.
func (c *Client) replace(ctx context.Context, key string, old, value []byte) (stored bool, err error) {
	err = c.client.Watch(ctx, func(tx *goredis.Tx) error {
		text, err := tx.Get(ctx, key).Result()
		if errors.Is(err, goredis.Nil) {
			return nil
		}
		if err != nil {
			return err
		}
		now, err := whole(key, text, c.bounds)
		if err != nil || !bytes.Equal(now, old) {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
			pipe.Set(ctx, key, notNil(value), 0)
			return nil
		})
		stored = err == nil
		return err
	}, key)
	return stored, err
}

// Apply implements kvdbsync.Writer, by MULTI and EXEC. A Cluster supports this only for
// keys of one slot, such as those with the same hash tag. For other keys Apply returns
// kvdbsync.ErrTooLarge.
func (c *Client) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	_, err := c.client.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
		queue(ctx, pipe, changes, 0)
		return nil
	})
	switch err := c.noted(ctx, err); {
	case errors.Is(err, goredis.ErrCrossSlot):
		return fmt.Errorf("%w: %d keys, %s and others, are in several slots of the redis cluster, which changes only one at a time: "+
			"expected a {hash tag} that all share, or one change after the other", kvdbsync.ErrTooLarge, len(changes), changes[0].Key)
	case err != nil:
		return fmt.Errorf("making %d changes at once in redis: %w", len(changes), err)
	}
	return nil
}

// queue adds changes to a pipe, one command for each. The keys live for ttl; 0: for ever.
func queue(ctx context.Context, pipe goredis.Pipeliner, changes []kvdbsync.Pair, ttl time.Duration) {
	for _, change := range changes {
		if change.Value == nil {
			pipe.Del(ctx, change.Key)
		} else {
			pipe.Set(ctx, change.Key, change.Value, ttl)
		}
	}
}
