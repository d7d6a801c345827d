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

// Lease implements kvdbsync.Leaser.
func (c *Connector) Lease(ctx context.Context, ttl time.Duration) (kvdbsync.Lease, error) {
	return c.session(ctx, ttl, c.leases, true)
}

// TTL implements kvdbsync.Lease.
func (s *session) TTL() time.Duration { return s.ttl }

// Left implements kvdbsync.Lease. PTTL answers -1 for a key without an end, and -2 for one that does not exist.
func (s *session) Left(ctx context.Context, key string) (time.Duration, error) {
	left, err := s.client.PTTL(ctx, key).Result()
	switch {
	case s.noted(ctx, err) != nil:
		return 0, fmt.Errorf("reading the time to live of %s in redis: %w", key, err)
	case left == -1:
		return kvdbsync.Forever, nil
	}
	return max(0, left), nil
}

// Claim implements kvdbsync.Lease. WATCH makes Redis refuse the write if another client
// writes the key after it was read.
func (s *session) Claim(ctx context.Context, key string, old, value []byte) (holds []byte, err error) {
	if err := s.held.take(ctx); err != nil {
		return nil, err
	}
	defer s.held.leave()
	if err := s.Over(); err != nil {
		return nil, err
	}
	for {
		holds, err = s.claim(ctx, key, old, value)
		if !errors.Is(err, goredis.TxFailedErr) {
			break
		}
	}
	if s.noted(ctx, err) != nil {
		return nil, fmt.Errorf("claiming %s in redis: %w", key, err)
	}
	if bytes.Equal(holds, value) {
		s.held.of[key] = holding{s, s.held.sumOf(value)}
	}
	return holds, nil
}

// claim compares and sets in one transaction: WATCH makes EXEC fail if the key has changed
// since it was read. It returns the value that the key has afterwards. old nil means that the
// key must be absent. The error is TxFailedErr if another client was faster; the caller tries
// again.
func (s *session) claim(ctx context.Context, key string, old, value []byte) (holds []byte, err error) {
	err = s.client.Watch(ctx, func(tx *goredis.Tx) error {
		text, err := tx.Get(ctx, key).Result()
		absent := errors.Is(err, goredis.Nil)
		if err != nil && !absent {
			return err
		}
		var now []byte
		if !absent {
			now, err = whole(key, text, s.bounds)
			if err != nil {
				return err
			}
			holds = now
		}
		if absent != (old == nil) || !bytes.Equal(now, old) {
			return nil
		}
		_, err = tx.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
			pipe.Set(ctx, key, value, s.ttl)
			return nil
		})
		holds = value
		return err
	}, key)
	return holds, err
}
