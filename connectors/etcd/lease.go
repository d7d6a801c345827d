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

// Claim implements kvdbsync.Lease, in one transaction.
func (s *session) Claim(ctx context.Context, key string, old, value []byte) ([]byte, error) {
	if err := s.Over(); err != nil {
		return nil, err
	}
	unchanged := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	if old != nil {
		unchanged = clientv3.Compare(clientv3.Value(key), "=", string(old))
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answer, err := s.client.Txn(ctx).If(unchanged).
		Then(clientv3.OpPut(key, string(value), clientv3.WithLease(s.lease))).
		Else(clientv3.OpGet(key)).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		s.Lose()
		return nil, fmt.Errorf("claiming %s in etcd: %w: %w", key, kvdbsync.ErrSessionOver, err)
	case err != nil:
		return nil, fmt.Errorf("claiming %s in etcd: %w", key, err)
	case answer.Succeeded:
		return value, nil
	}
	if len(answer.Responses) != 1 || answer.Responses[0].GetResponseRange() == nil {
		return nil, fmt.Errorf("claiming %s in etcd: %w: it lacks the key's value", key, ErrNotEtcd)
	}
	found := answer.Responses[0].GetResponseRange().Kvs
	if len(found) == 0 {
		return nil, nil
	}
	return only(key, found[0], s.bounds)
}
