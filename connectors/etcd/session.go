package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A session is a lease that a goroutine of its own renews until Close.
type session struct {
	*Client
	lease clientv3.LeaseID
	ttl   time.Duration // as the server has granted it

	lost    chan struct{}
	lose    func() // closes lost, once
	release context.CancelFunc
	held    sync.WaitGroup

	closing sync.Once
	closed  error // what Close returns
}

// Session implements kvdbsync.Publisher. etcd counts in seconds, and grants no
// less than one and a half times its election timeout.
func (c *Connector) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	if ttl <= 0 {
		ttl = time.Duration(c.cfg.SessionTTL) * time.Second
	}
	client, err := Dial(context.WithoutCancel(ctx), c.cfg)
	if err != nil {
		return nil, err
	}
	s := &session{Client: client, lost: make(chan struct{})}
	s.lose = sync.OnceFunc(func() { close(s.lost) })
	if err := s.begin(ctx, ttl); err != nil {
		return nil, errors.Join(fmt.Errorf("beginning a session in etcd: %w", err), client.Close())
	}
	return s, nil
}

func (s *session) begin(ctx context.Context, ttl time.Duration) error {
	asked := time.Now()
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	granted, err := s.client.Grant(bounded, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return err
	}
	s.lease, s.ttl = granted.ID, time.Duration(granted.TTL)*time.Second
	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	s.release = release
	s.held.Go(func() { s.hold(holding, asked.Add(s.ttl)) })
	return nil
}

// hold renews the lease three times in its life, and more often while it cannot,
// until the server says that there is none, or must have ended it.
func (s *session) hold(ctx context.Context, end time.Time) {
	pause := s.ttl / 3
	for sleep(ctx, min(pause, time.Until(end))) {
		asked := time.Now()
		err := s.renew(ctx, min(s.ttl/3, time.Until(end)))
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pause, end = s.ttl/3, asked.Add(s.ttl)
		case errors.Is(err, rpctypes.ErrLeaseNotFound), !time.Now().Before(end):
			s.lose()
			return
		default:
			pause = s.ttl / 10
		}
	}
}

// renew asks once; each time another server of several. The client's own renewing
// asks again and again without a pause where none listens.
func (s *session) renew(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stream, err := pb.NewLeaseClient(s.client.ActiveConnection()).LeaseKeepAlive(ctx, streamOptions()...)
	if err != nil {
		return rpctypes.Error(err)
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(s.lease)}); err != nil {
		return rpctypes.Error(err)
	}
	answer, err := stream.Recv()
	if err == nil && answer.TTL <= 0 {
		return rpctypes.ErrLeaseNotFound
	}
	return rpctypes.Error(err)
}

// Apply implements kvdbsync.Session, in one transaction.
func (s *session) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	select {
	case <-s.lost:
		return kvdbsync.ErrSessionOver
	default:
	}
	_, err := s.change(ctx, changes, s.lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.lose()
		return fmt.Errorf("%w: %w", kvdbsync.ErrSessionOver, err)
	}
	return err
}

// Lost implements kvdbsync.Session.
func (s *session) Lost() <-chan struct{} { return s.lost }

// Close implements kvdbsync.Session.
func (s *session) Close(ctx context.Context) error {
	s.closing.Do(func() { s.closed = s.end(ctx) })
	return s.closed
}

// end revokes the lease, and lets it run out where that cannot be.
func (s *session) end(ctx context.Context) error {
	s.release()
	s.held.Wait()
	s.lose()
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := s.client.Revoke(bounded, s.lease)
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		err = nil
	case err != nil:
		err = fmt.Errorf("ending a session in etcd: %w; what it wrote stays for %v", err, s.ttl)
	}
	return errors.Join(err, s.Client.Close())
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
