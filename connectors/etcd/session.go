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
	lease    clientv3.LeaseID
	ttl      time.Duration // as granted by the server
	renewals renewals
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

// renewals is the stream of a session's renewals. A new stream may cost a login, so it is
// used until an error. Only the goroutine of kvdbsync.Renewal uses it while that runs.
type renewals struct {
	stream pb.Lease_LeaseKeepAliveClient // nil: the next renewal opens it
	hangUp context.CancelFunc            // ends stream
}

// close ends the stream, if there is one.
func (r *renewals) close() {
	if r.hangUp != nil {
		r.hangUp()
	}
	*r = renewals{}
}

// renew asks once. After a failure the next renewal asks another server, if there are
// several. The renewal of the etcd client repeats without a pause if no server listens.
func (s *session) renew(ctx context.Context) error {
	answer, err := s.ask(ctx)
	err = rpctypes.Error(err)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) || err == nil && answer.TTL <= 0 {
		return kvdbsync.ErrSessionOver
	}
	return err
}

// ask sends one renewal and waits for its answer until ctx ends. After any error it closes
// the stream, so a late answer is never taken for that of the next renewal.
func (s *session) ask(ctx context.Context) (answer *pb.LeaseKeepAliveResponse, err error) {
	r := &s.renewals
	var lasting context.Context // of a new stream
	if r.stream == nil {
		lasting, r.hangUp = context.WithCancel(context.WithoutCancel(ctx))
	}
	stop := context.AfterFunc(ctx, r.hangUp)
	defer func() {
		if !stop() || answer == nil {
			r.close()
		}
	}()
	if r.stream == nil {
		if r.stream, err = pb.NewLeaseClient(s.client.ActiveConnection()).LeaseKeepAlive(lasting); err != nil {
			return nil, err
		}
	}
	if err := r.stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(s.lease)}); err != nil {
		return nil, err
	}
	return r.stream.Recv()
}

// Apply implements kvdbsync.Session, in one transaction.
func (s *session) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	if err := s.Over(); err != nil {
		return err
	}
	err := s.change(ctx, changes, s.lease)
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
	s.renewals.close()
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
