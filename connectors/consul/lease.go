package consul

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Lease implements kvdbsync.Leaser.
func (c *Connector) Lease(ctx context.Context, ttl time.Duration) (kvdbsync.Lease, error) {
	return c.session(ctx, ttl)
}

// TTL implements kvdbsync.Lease. Consul may take twice the session's TTL to end it.
func (s *session) TTL() time.Duration { return 2 * s.ttl }

// Left implements kvdbsync.Lease. Consul does not say since when a session has not been renewed. A session that this
// user may not read counts as one of an agent. A session without a TTL lives as long as its node.
func (s *session) Left(ctx context.Context, key string) (time.Duration, error) {
	now, err := s.get(ctx, key)
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading the session of %s in consul: %w", key, err)
	case now == nil:
		return 0, nil
	case now.Session == "":
		return kvdbsync.Forever, nil
	}
	r, err := s.begun(ctx)
	if err != nil {
		return 0, err
	}
	defer r.end()
	holder, _, err := s.api.Session().Info(now.Session, r.read())
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading the session of %s in consul: %w", key, r.explain(err))
	case holder == nil:
		return s.TTL(), nil
	}
	ttl, err := time.ParseDuration(holder.TTL)
	if err != nil || ttl <= 0 {
		return kvdbsync.Forever, nil
	}
	return 2 * ttl, nil
}

// Claim implements kvdbsync.Lease. The transaction checks that the key has not changed
// since it was read, and locks it.
func (s *session) Claim(ctx context.Context, key string, old, value []byte) ([]byte, error) {
	if err := s.Over(); err != nil {
		return nil, err
	}
	now, err := s.get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("claiming %s in consul: %w", key, err)
	}
	if (now == nil) != (old == nil) || now != nil && !bytes.Equal(now.Value, old) {
		return holding(now), nil
	}
	ops := api.KVTxnOps{{Verb: api.KVCheckNotExists, Key: storeKey(key)}}
	if now != nil { // Consul does not transfer a lock between sessions
		ops = api.KVTxnOps{{Verb: api.KVDeleteCAS, Key: storeKey(key), Index: now.ModifyIndex}}
	}
	ops = append(ops, &api.KVTxnOp{Verb: api.KVLock, Key: storeKey(key), Value: value, Session: s.id})
	refused := s.change(ctx, []kvdbsync.Pair{{Key: key, Value: value}}, ops)
	if refused == nil {
		return value, nil
	}
	if errors.Is(refused, kvdbsync.ErrSessionOver) {
		s.Lose()
		return nil, refused
	}
	later, err := s.get(ctx, key)
	if err != nil || bytes.Equal(holding(later), holding(now)) { // so another writer was not the reason
		return nil, errors.Join(refused, err)
	}
	return holding(later), nil
}

// holding returns a copy of the value, never nil for an existing key: an empty value is a
// value, and nil means that nobody holds the key.
func holding(p *api.KVPair) []byte {
	if p == nil {
		return nil
	}
	return append([]byte{}, p.Value...)
}
