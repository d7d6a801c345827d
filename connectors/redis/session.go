package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
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
// another session must not write the same key. What another program has written since is known
// by its value.
type holdings struct {
	turn chan struct{} // holds a token while a goroutine reads or changes keys, here and in Redis
	seed maphash.Seed  // of sumOf
	// By key. Only the goroutine with the turn reads or changes it.
	of map[string]holding
}

// A holding is one key of a session.
type holding struct {
	owner *session
	sum   uint64 // of the value that the owner wrote last; see sumOf
}

// sumOf returns what a holding keeps of a value.
func (h *holdings) sumOf(value []byte) uint64 { return maphash.Bytes(h.seed, value) }

// newHoldings returns the record of keys that sessions of this process hold. The channel
// is a lock that a context can interrupt.
func newHoldings() *holdings {
	return &holdings{turn: make(chan struct{}, 1), seed: maphash.MakeSeed(), of: map[string]holding{}}
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
	for key, held := range h.of {
		if held.owner == s {
			keys = append(keys, key)
		}
	}
	return keys
}

// forget removes the keys of s. It does not delete them in Redis. The caller must have the
// turn.
func (h *holdings) forget(s *session) {
	maps.DeleteFunc(h.of, func(_ string, held holding) bool { return held.owner == s })
}

// A session writes keys that expire unless they are renewed.
type session struct {
	*Client
	kvdbsync.Renewal
	held *holdings
	// Whether another program may take the keys over. Then a renewal leaves what others have
	// written. Statuses are renewed without a look at their values: who overwrites one renews it
	// as well, and to read all of them would double the work of the server.
	lease bool
	// At least a millisecond, the unit of PEXPIRE. A TTL of zero would delete the keys at
	// once.
	ttl time.Duration
}

// Session implements kvdbsync.Publisher. Its keys expire in Redis unless they are renewed.
// The session renews them three times per ttl, with one command for each key.
func (c *Connector) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	return c.session(ctx, ttl, c.held, false)
}

// session begins a session. Redis has none: the keys get a time to live, which the session
// renews. A PING first tells whether the server can be reached at all.
func (c *Connector) session(ctx context.Context, ttl time.Duration, held *holdings, lease bool) (*session, error) {
	cfg := c.cfg
	cfg.ReadReplicas, cfg.RouteByLatency = false, false // a replica that is behind would say that a lease is gone
	client, err := Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := client.client.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("beginning a session in redis: %w", err), client.Close())
	}
	s := &session{Client: client, held: held, lease: lease, ttl: max(cmp.Or(ttl, sessionTTL), time.Millisecond)}
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

// renewSome omits keys that meanwhile belong to another session or to none. The error is
// errVanished if a key does not exist, or if another program has taken a lease's key over.
func (s *session) renewSome(ctx context.Context, keys []string) error {
	if err := s.held.take(ctx); err != nil {
		return err
	}
	defer s.held.leave()
	keys = slices.DeleteFunc(keys, func(key string) bool { return s.held.of[key].owner != s })
	renewed, err := s.renewTogether(ctx, keys)
	if s.noted(ctx, err) != nil {
		return fmt.Errorf("renewing %d keys in redis: %w", len(keys), err)
	}
	for i, key := range keys {
		if i == len(renewed) || renewed[i] != key {
			return fmt.Errorf("%w: %s", errVanished, key)
		}
	}
	return nil
}

// renewTogether returns the keys that it has renewed, in their order.
func (s *session) renewTogether(ctx context.Context, keys []string) ([]string, error) {
	renew := func(pipe goredis.Pipeliner, key string) { pipe.PExpire(ctx, key, s.ttl) }
	if s.lease {
		return s.changeOwn(ctx, keys, renew)
	}
	answers, err := s.client.Pipelined(ctx, each(keys, renew))
	return changed(keys, answers), err
}

// each queues a command for each key.
func each(keys []string, command func(goredis.Pipeliner, string)) func(goredis.Pipeliner) error {
	return func(pipe goredis.Pipeliner) error {
		for _, key := range keys {
			command(pipe, key)
		}
		return nil
	}
}

// changed returns the keys that a command has changed. PEXPIRE answers 0 for a key that does not exist.
func changed(keys []string, answers []goredis.Cmder) (out []string) {
	for i, answer := range answers {
		if there, ok := answer.(*goredis.BoolCmd); answer.Err() == nil && (!ok || there.Val()) {
			out = append(out, keys[i])
		}
	}
	return out
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
			s.held.of[change.Key] = holding{s, s.held.sumOf(change.Value)}
		}
	}
}

// Close implements kvdbsync.Session.
func (s *session) Close(ctx context.Context) error {
	lost := s.Over() != nil
	return s.End(func() error { return s.end(ctx, lost) })
}

// end deletes the session's keys. If the server is not reachable, they expire, as those of a lost
// session do or have done: then others may have written them.
func (s *session) end(ctx context.Context, lost bool) error {
	err := s.release(ctx, lost)
	if err != nil {
		err = fmt.Errorf("ending a session in redis: %w; its keys stay for %v", err, s.ttl)
	}
	return errors.Join(err, s.Client.Close())
}

// release forgets the keys that this session wrote last. Unless the session was lost, it deletes them, in portions that
// no server takes long for.
func (s *session) release(ctx context.Context, lost bool) error {
	if err := s.held.take(ctx); err != nil {
		return err
	}
	defer s.held.leave()
	defer s.held.forget(s)
	if lost {
		return nil
	}
	for some := range slices.Chunk(s.held.keysOf(s), renewedAtOnce) {
		_, err := s.changeOwn(ctx, some, func(pipe goredis.Pipeliner, key string) { pipe.Del(ctx, key) })
		if s.noted(ctx, err) != nil {
			return err
		}
	}
	return nil
}

// changeOwn runs a command on each of the keys that still has the value that this session wrote,
// and returns those that it has changed, in their order. In a Cluster it takes one key after the
// other, because their servers differ.
func (s *session) changeOwn(ctx context.Context, keys []string, command func(goredis.Pipeliner, string)) (out []string, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	size := len(keys)
	if s.reload != nil {
		size = 1
	}
	for some := range slices.Chunk(keys, size) {
		done, err := s.changeAtOnce(ctx, some, command)
		for errors.Is(err, goredis.TxFailedErr) { // another program has written one of them meanwhile
			done, err = s.changeAtOnce(ctx, some, command)
		}
		out = append(out, done...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// changeAtOnce tries changeOwn once. The look at the values and the commands are one step: WATCH makes
// EXEC fail if a key changes in between. The error is then TxFailedErr.
func (s *session) changeAtOnce(ctx context.Context, keys []string, command func(goredis.Pipeliner, string)) (out []string, err error) {
	err = s.client.Watch(ctx, func(tx *goredis.Tx) error {
		values, _ := tx.Pipelined(ctx, each(keys, func(pipe goredis.Pipeliner, key string) { pipe.Get(ctx, key) }))
		own, err := s.ownOf(keys, values)
		if err != nil || len(own) == 0 {
			return err
		}
		answers, err := tx.TxPipelined(ctx, each(own, command))
		out = changed(own, answers)
		return err
	}, keys...)
	return out, err
}

// ownOf returns the keys with the values that this session wrote. values are the answers of GET.
func (s *session) ownOf(keys []string, values []goredis.Cmder) (own []string, err error) {
	for i, value := range values {
		switch text, err := value.(*goredis.StringCmd).Bytes(); {
		case errors.Is(err, goredis.Nil), goredis.HasErrorPrefix(err, "WRONGTYPE"): // of another program
		case err != nil:
			return nil, err
		case s.held.sumOf(text) == s.held.of[keys[i]].sum:
			own = append(own, keys[i])
		}
	}
	return own, nil
}
