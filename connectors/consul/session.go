package consul

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/kvdbsync"
)

// shortestLife is Consul's minimum TTL of a session, unless its servers have another
// session_ttl_min. Consul may take twice as long to end a session.
const shortestLife = 10 * time.Second

// A session is a session of Consul. It holds the keys that it wrote as locks. When it
// ends, Consul deletes them.
type session struct {
	*Client
	kvdbsync.Renewal
	id  string
	ttl time.Duration
}

// Session implements kvdbsync.Publisher. Without a ttl it uses Consul's minimum, 20 s.
func (c *Connector) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	return c.session(ctx, ttl)
}

// session begins a session. Consul may keep one for twice its TTL after the last renewal,
// so it gets half of the wanted time.
func (c *Connector) session(ctx context.Context, ttl time.Duration) (*session, error) {
	client, err := Dial(c.cfg)
	if err != nil {
		return nil, err
	}
	s := &session{Client: client, ttl: cmp.Or(ttl/2, shortestLife)}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("beginning a session in consul: %w", err), client.Close())
	}
	return s, nil
}

// begin creates the session. A server may refuse a TTL that is shorter than its minimum;
// then the shortest one that Consul documents is used.
func (s *session) begin(ctx context.Context) error {
	asked := time.Now()
	err := s.create(ctx)
	if err != nil && s.ttl < shortestLife && strings.Contains(err.Error(), "Invalid Session TTL") {
		s.ttl = shortestLife
		err = s.create(ctx)
	}
	if err != nil {
		return err
	}
	s.Begin(ctx, s.ttl, asked, s.renew)
	return nil
}

// create makes a session that only its TTL ends. Its keys are deleted with it, and another
// session can write them at once. The library has no option for the last part.
func (s *session) create(ctx context.Context) error {
	r, err := s.begun(ctx)
	if err != nil {
		return err
	}
	defer r.end()
	var made struct{ ID string }
	_, err = s.api.Raw().Write("/v1/session/create", map[string]any{
		"Name": "keyplane", "TTL": s.ttl.String(), "Behavior": api.SessionBehaviorDelete,
		"LockDelay": "0s", "NodeChecks": []string{},
	}, &made, r.write())
	s.id = made.ID
	if err == nil && s.id == "" {
		return fmt.Errorf("%w: it names no session", ErrNotConsul)
	}
	return r.explain(err)
}

// renew fails with ErrSessionOver if the server does not know the session any more.
func (s *session) renew(ctx context.Context) error {
	r, err := s.begun(ctx)
	if err != nil {
		return err
	}
	defer r.end()
	entry, _, err := s.api.Session().Renew(s.id, r.write())
	if err == nil && entry == nil {
		return kvdbsync.ErrSessionOver
	}
	return err
}

// Apply implements kvdbsync.Session. It makes all changes at once, unless other sessions
// hold some of the keys.
func (s *session) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	if err := s.Over(); err != nil {
		return err
	}
	err := s.apply(ctx, changes, false)
	if errors.Is(err, errHeld) {
		err = s.takeOver(ctx, changes)
	}
	if errors.Is(err, kvdbsync.ErrSessionOver) {
		s.Lose()
	}
	return err
}

// takeOver needs two operations for each change, so half as many changes fit into a
// transaction.
func (s *session) takeOver(ctx context.Context, changes []kvdbsync.Pair) error {
	for part := range slices.Chunk(changes, kvdbsync.MaxApply/2) {
		if err := s.apply(ctx, part, true); err != nil {
			return err
		}
	}
	return nil
}

// errHeld says that another session holds the key.
var errHeld = errors.New("another session holds the key")

// apply makes one transaction. It first deletes a key that another session may hold,
// because Consul does not transfer a lock between sessions.
func (s *session) apply(ctx context.Context, changes []kvdbsync.Pair, held bool) error {
	var ops api.KVTxnOps
	for _, change := range changes {
		key := storeKey(change.Key)
		if change.Value == nil || held {
			ops = append(ops, &api.KVTxnOp{Verb: api.KVDelete, Key: key})
		}
		if change.Value != nil {
			ops = append(ops, &api.KVTxnOp{Verb: api.KVLock, Key: key, Value: change.Value, Session: s.id})
		}
	}
	return s.change(ctx, changes, ops)
}

// Close implements kvdbsync.Session. The session ends at once; if Consul is not reachable,
// it ends when its TTL expires.
func (s *session) Close(ctx context.Context) error {
	return s.End(func() error { return errors.Join(s.destroy(ctx), s.Client.Close()) })
}

// destroy ends the session, and Consul deletes its keys. If that fails they stay until the
// session expires.
func (s *session) destroy(ctx context.Context) error {
	r, err := s.begun(ctx)
	if err == nil {
		defer r.end()
		_, err = s.api.Session().Destroy(s.id, r.write())
		err = r.explain(err)
	}
	if err != nil {
		return fmt.Errorf("ending a session in consul: %w; its keys stay for up to %v", err, 2*s.ttl)
	}
	return nil
}
