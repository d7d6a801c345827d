package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/kvdbsync"
)

// sessionTTL is the default TTL of keys after their writer is gone. Each key costs the
// server one command per third of the TTL.
const sessionTTL = 30 * time.Second

// renewedAtOnce is the number of keys renewed by one request.
const renewedAtOnce = 500

// errVanished ends a session: one of its keys does not exist any more.
var errVanished = fmt.Errorf("%w: a key of it has vanished from redis", kvdbsync.ErrSessionOver)

// holdings records which session owns each key, because Redis does not record it. The
// sessions of one Connector share it. Leases share another one, because a session has the turn
// for as long as its server hangs, and a lease must be renewed meanwhile. So a lease and
// another session must not write the same key. A change by another program is noticed only
// when the key has vanished.
type holdings struct {
	turn chan struct{} // holds a token while a goroutine reads or changes keys, here and in Redis
	// Owners by key. Only the goroutine with the turn reads or changes it.
	of map[string]*session
}

// newHoldings returns the record of keys that sessions of this process hold. The channel
// is a lock that a context can interrupt.
func newHoldings() *holdings {
	return &holdings{turn: make(chan struct{}, 1), of: map[string]*session{}}
}

// take waits for the turn. The error is that of ctx; then the caller does not have the turn
// and must not call leave.
func (h *holdings) take(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave ends the turn that take began.
func (h *holdings) leave() { <-h.turn }

// keysOf returns the keys of s. The caller must have the turn.
func (h *holdings) keysOf(s *session) (keys []string) {
	for key, owner := range h.of {
		if owner == s {
			keys = append(keys, key)
		}
	}
	return keys
}

// forget removes the keys of s. It does not delete them in Redis. The caller must have the
// turn.
func (h *holdings) forget(s *session) {
	maps.DeleteFunc(h.of, func(_ string, owner *session) bool { return owner == s })
}

// A session writes keys that expire unless they are renewed.
type session struct {
	*Client
	kvdbsync.Renewal
	held *holdings
	// At least a millisecond, the unit of PEXPIRE. A TTL of zero would delete the keys at
	// once.
	ttl time.Duration
}

// Session implements kvdbsync.Publisher. Its keys expire in Redis unless they are renewed.
// The session renews them three times per ttl, with one command for each key.
func (c *Connector) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	return c.session(ctx, ttl, c.held)
}

// session begins a session. Redis has none: the keys get a time to live, which the session
// renews. A PING first tells whether the server can be reached at all.
func (c *Connector) session(ctx context.Context, ttl time.Duration, held *holdings) (*session, error) {
	client, err := Dial(ctx, c.cfg)
	if err != nil {
		return nil, err
	}
	if err := client.client.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("beginning a session in redis: %w", err), client.Close())
	}
	s := &session{Client: client, held: held, ttl: max(cmp.Or(ttl, sessionTTL), time.Millisecond)}
	s.Begin(ctx, s.ttl, time.Now(), s.renew)
	return s, nil
}

// renew extends the TTL of all keys, in several requests. It takes the turn for each request,
// so that writers wait for one request at most.
func (s *session) renew(ctx context.Context) error {
	if err := s.held.take(ctx); err != nil {
		return err
	}
	keys := s.held.keysOf(s)
	s.held.leave()
	for some := range slices.Chunk(keys, renewedAtOnce) {
		if err := s.renewSome(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// renewSome omits keys that meanwhile belong to another session or to none. PEXPIRE answers 0
// for a key that does not exist: then the error is errVanished.
func (s *session) renewSome(ctx context.Context, keys []string) error {
	if err := s.held.take(ctx); err != nil {
		return err
	}
	defer s.held.leave()
	keys = slices.DeleteFunc(keys, func(key string) bool { return s.held.of[key] != s })
	answers, err := s.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, key := range keys {
			pipe.PExpire(ctx, key, s.ttl)
		}
		return nil
	})
	if s.noted(ctx, err) != nil {
		return fmt.Errorf("renewing %d keys in redis: %w", len(keys), err)
	}
	for i, answer := range answers {
		if there, ok := answer.(*goredis.BoolCmd); ok && !there.Val() {
			return fmt.Errorf("%w: %s", errVanished, keys[i])
		}
	}
	return nil
}

// Apply implements kvdbsync.Session. It makes all changes at once, but in a Cluster one by
// one. If a write fails, its key may still exist for ttl.
func (s *session) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	if err := s.held.take(ctx); err != nil {
		return err
	}
	defer s.held.leave()
	if err := s.Over(); err != nil {
		return err
	}
	pipe := s.client.TxPipeline()
	if s.reload != nil {
		pipe = s.client.Pipeline()
	}
	queue(ctx, pipe, changes, s.ttl)
	answers, err := pipe.Exec(ctx)
	s.note(changes, answers)
	if s.noted(ctx, err) != nil {
		return fmt.Errorf("making %d changes in redis: %w", len(changes), err)
	}
	return nil
}

// note makes the session the owner of the written keys, and removes the owner of the
// deleted ones.
func (s *session) note(changes []kvdbsync.Pair, answers []goredis.Cmder) {
	for i, change := range changes {
		switch {
		case i >= len(answers) || answers[i].Err() != nil:
		case change.Value == nil:
			delete(s.held.of, change.Key)
		default:
			s.held.of[change.Key] = s
		}
	}
}

// Close implements kvdbsync.Session.
func (s *session) Close(ctx context.Context) error {
	return s.End(func() error { return s.end(ctx) })
}

// end deletes the session's keys. If the server is not reachable, they expire.
func (s *session) end(ctx context.Context) error {
	err := s.deleteAll(ctx)
	if err != nil {
		err = fmt.Errorf("ending a session in redis: %w; its keys stay for %v", err, s.ttl)
	}
	return errors.Join(err, s.Client.Close())
}

// deleteAll deletes the keys that this session wrote last, in portions that no server
// takes long for.
func (s *session) deleteAll(ctx context.Context) error {
	if err := s.held.take(ctx); err != nil {
		return err
	}
	defer s.held.leave()
	defer s.held.forget(s)
	for some := range slices.Chunk(s.held.keysOf(s), renewedAtOnce) {
		_, err := s.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
			for _, key := range some {
				pipe.Del(ctx, key)
			}
			return nil
		})
		if s.noted(ctx, err) != nil {
			return err
		}
	}
	return nil
}
