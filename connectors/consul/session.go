package consul

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/kvdbsync"
)

// shortestLife is the shortest that Consul gives a session, unless its servers
// have another session_ttl_min. It may take twice as long to end one.
const shortestLife = 10 * time.Second

// A session is one of Consul's, which holds the keys that it wrote as locks: when
// it ends, Consul deletes them. A goroutine of its own renews it until Close.
type session struct {
	*Client
	id   string
	life time.Duration // without renewal

	lost    chan struct{}
	lose    func() // closes lost, once
	release context.CancelFunc
	held    sync.WaitGroup

	closing sync.Once
	closed  error // what Close returns
}

// Session implements kvdbsync.Publisher. Without a ttl it is Consul's shortest, 20 s.
func (c *Connector) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	client, err := Dial(c.cfg)
	if err != nil {
		return nil, err
	}
	s := &session{Client: client, life: cmp.Or(ttl/2, shortestLife), lost: make(chan struct{})}
	s.lose = sync.OnceFunc(func() { close(s.lost) })
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("beginning a session in consul: %w", err), client.Close())
	}
	return s, nil
}

func (s *session) begin(ctx context.Context) error {
	asked := time.Now()
	err := s.create(ctx)
	if err != nil && s.life < shortestLife && strings.Contains(err.Error(), "Invalid Session TTL") {
		s.life = shortestLife
		err = s.create(ctx)
	}
	if err != nil {
		return err
	}
	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	s.release = release
	s.held.Go(func() { s.hold(holding, asked.Add(s.life)) })
	return nil
}

// create makes a session that nothing but its time ends, whose keys go with it and
// can be written by another at once. The library has no means to say the last.
func (s *session) create(ctx context.Context) error {
	r, err := s.begun(ctx)
	if err != nil {
		return err
	}
	defer r.end()
	var made struct{ ID string }
	_, err = s.api.Raw().Write("/v1/session/create", map[string]any{
		"Name": "keyplane", "TTL": s.life.String(), "Behavior": api.SessionBehaviorDelete,
		"LockDelay": "0s", "NodeChecks": []string{},
	}, &made, r.write())
	s.id = made.ID
	return r.explain(err)
}

// hold renews the session three times in its life, and more often while it cannot,
// until Consul says that there is none, or may have ended it.
func (s *session) hold(ctx context.Context, end time.Time) {
	pause := s.life / 3
	for sleep(ctx, min(pause, time.Until(end))) {
		asked := time.Now()
		err := s.renew(ctx, min(s.life/3, time.Until(end)))
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pause, end = s.life/3, asked.Add(s.life)
		case errors.Is(err, kvdbsync.ErrSessionOver), !time.Now().Before(end):
			s.lose()
			return
		default:
			pause = s.life / 10
		}
	}
}

func (s *session) renew(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
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

// Apply implements kvdbsync.Session. It makes all changes at once, unless some of
// the keys are those of other sessions.
func (s *session) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	select {
	case <-s.lost:
		return kvdbsync.ErrSessionOver
	default:
	}
	err := s.apply(ctx, changes, false)
	if errors.Is(err, errHeld) {
		err = s.takeOver(ctx, changes)
	}
	if errors.Is(err, kvdbsync.ErrSessionOver) {
		s.lose()
	}
	return err
}

// takeOver makes two operations of a change, so half as many fit into a transaction.
func (s *session) takeOver(ctx context.Context, changes []kvdbsync.Pair) error {
	for part := range slices.Chunk(changes, kvdbsync.MaxApply/2) {
		if err := s.apply(ctx, part, true); err != nil {
			return err
		}
	}
	return nil
}

// errHeld says that a key is another session's.
var errHeld = errors.New("another session holds the key")

// apply makes one transaction. A key that another session may hold is deleted
// first: Consul does not hand a lock over.
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

// Lost implements kvdbsync.Session.
func (s *session) Lost() <-chan struct{} { return s.lost }

// Close implements kvdbsync.Session.
func (s *session) Close(ctx context.Context) error {
	s.closing.Do(func() { s.closed = s.end(ctx) })
	return s.closed
}

// end ends the session at once, and lets it run out where that cannot be.
func (s *session) end(ctx context.Context) error {
	s.release()
	s.held.Wait()
	s.lose()
	return errors.Join(s.destroy(ctx), s.Client.Close())
}

func (s *session) destroy(ctx context.Context) error {
	r, err := s.begun(ctx)
	if err == nil {
		defer r.end()
		_, err = s.api.Session().Destroy(s.id, r.write())
		err = r.explain(err)
	}
	if err != nil {
		return fmt.Errorf("ending a session in consul: %w; what it wrote stays for up to %v", err, 2*s.life)
	}
	return nil
}

// sleep tells whether the time passed, rather than ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
