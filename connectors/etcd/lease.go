package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Lease implements kvdbsync.Leaser.
func (c *Connector) Lease(ctx context.Context, ttl time.Duration) (kvdbsync.Lease, error) {
	return c.session(ctx, ttl)
}

// TTL implements kvdbsync.Lease.
func (s *session) TTL() time.Duration { return s.ttl }

// Left implements kvdbsync.Lease. The user needs no right but to read the keys of the lease.
func (s *session) Left(ctx context.Context, key string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	found, err := s.client.Get(ctx, key) // with keys only, etcd 3.7 answers without the lease
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading the lease of %s in etcd: %w", key, err)
	case len(found.Kvs) == 0:
		return 0, nil
	case found.Kvs[0].Lease == 0:
		return kvdbsync.Forever, nil
	}
	lease, err := s.client.TimeToLive(ctx, clientv3.LeaseID(found.Kvs[0].Lease))
	if err != nil {
		return 0, fmt.Errorf("reading the lease of %s in etcd: %w", key, err)
	}
	return seconds(lease.TTL), nil
}

// seconds returns a time to live of etcd, which is -1 for a lease that has ended.
func seconds(ttl int64) time.Duration {
	if ttl > int64(kvdbsync.Forever/time.Second) {
		return kvdbsync.Forever
	}
	return time.Duration(max(0, ttl)) * time.Second
}

// Claim implements kvdbsync.Lease.
func (s *session) Claim(ctx context.Context, key string, old, value []byte) ([]byte, error) {
	if err := s.Over(); err != nil {
		return nil, err
	}
	done, err := s.swap(ctx, key, old, value, s.lease)
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		s.Lose()
		return nil, fmt.Errorf("claiming %s in etcd: %w: %w", key, kvdbsync.ErrSessionOver, err)
	case err != nil:
		return nil, fmt.Errorf("claiming %s in etcd: %w", key, err)
	case done:
		return value, nil
	}
	holds, err := s.Get(ctx, key)
	if errors.Is(err, kvdbsync.ErrNotFound) {
		return nil, nil
	}
	return holds, err
}
