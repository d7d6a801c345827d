package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A session is a lease.
type session struct {
	*Client
	kvdbsync.Renewal
	lease clientv3.LeaseID
	ttl   time.Duration // as granted by the server
}

// Session implements kvdbsync.Publisher. etcd counts in seconds, and grants at least one
// and a half times its election timeout.
func (c *Connector) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	return c.session(ctx, ttl)
}

// session begins a session with a client of its own. The context bounds only the
// beginning.
func (c *Connector) session(ctx context.Context, ttl time.Duration) (*session, error) {
	if ttl <= 0 {
		ttl = time.Duration(c.cfg.SessionTTL) * time.Second
	}
	client, err := Dial(context.WithoutCancel(ctx), c.cfg)
	if err != nil {
		return nil, err
	}
	s := &session{Client: client}
	if err := s.begin(ctx, ttl); err != nil {
		return nil, errors.Join(fmt.Errorf("beginning a session in etcd: %w", err), client.Close())
	}
	return s, nil
}

// begin grants the lease, in whole seconds, and starts its renewal. An absurd TTL means
// that the server is not etcd.
func (s *session) begin(ctx context.Context, ttl time.Duration) error {
	asked := time.Now()
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	granted, err := s.client.Grant(bounded, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return err
	}
	if granted.TTL < 1 || granted.TTL > mostTTL {
		return fmt.Errorf("%w: it grants a lease of %d seconds", ErrNotEtcd, granted.TTL)
	}
	s.lease, s.ttl = granted.ID, time.Duration(granted.TTL)*time.Second
	s.Begin(ctx, s.ttl, asked, s.renew)
	return nil
}

// mostTTL is the longest time in seconds that etcd grants to a lease.
const mostTTL = 9_000_000_000

// renew asks once, and each time another server if there are several. The renewal of the
// etcd client repeats without a pause if no server listens.
func (s *session) renew(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream
	stream, err := pb.NewLeaseClient(s.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return rpctypes.Error(err)
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(s.lease)}); err != nil {
		return rpctypes.Error(err)
	}
	answer, err := stream.Recv()
	err = rpctypes.Error(err)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) || err == nil && answer.TTL <= 0 {
		return kvdbsync.ErrSessionOver
	}
	return err
}

// Apply implements kvdbsync.Session, in one transaction.
func (s *session) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	if err := s.Over(); err != nil {
		return err
	}
	_, err := s.change(ctx, changes, s.lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.Lose()
		return fmt.Errorf("%w: %w", kvdbsync.ErrSessionOver, err)
	}
	return err
}

// Close implements kvdbsync.Session.
func (s *session) Close(ctx context.Context) error {
	lost := s.Over() != nil
	return s.End(func() error { return s.end(ctx, lost) })
}

// end revokes the lease. If that fails, the lease expires by itself. A lost lease has
// expired or was revoked.
func (s *session) end(ctx context.Context, lost bool) error {
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := s.client.Revoke(bounded, s.lease)
	switch {
	case lost, errors.Is(err, rpctypes.ErrLeaseNotFound):
		err = nil
	case err != nil:
		err = fmt.Errorf("ending a session in etcd: %w; its keys stay for up to %v", err, s.ttl)
	}
	return errors.Join(err, s.Client.Close())
}
