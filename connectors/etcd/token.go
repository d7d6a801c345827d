package etcd

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/keyplane/keyplane/internal/backoff"
)

const (
	// tokenLife is the shortest life of a token: etcd counts it in seconds.
	tokenLife = time.Second
	// tokenPatience is the longest time for which younger tokens may be refused. A member may not
	// have learned of a new token yet, or may belong to another cluster that never accepts it.
	tokenPatience = 3 * time.Second
	// tokenPause is the longest pause before a request is repeated, so that a short-lived token
	// does not expire in it.
	tokenPause = 100 * time.Millisecond
)

// A retrier repeats requests whose token was refused. A token can expire between the login
// that returned it and the request that uses it. The etcd client logs in again, but sends the
// request only once more. A refused request had no effect, so repeating it is safe.
type retrier struct {
	password bool // the client has one, so a request without a user lacks only its token
}

// retryTokens makes the requests of a client outlive their tokens.
func retryTokens(c *clientv3.Client) retrier {
	r := retrier{password: c.Password != ""}
	c.KV = clientv3.NewKVFromKVClient(kvRetrier{clientv3.RetryKVClient(c), r}, c)
	c.Lease = clientv3.NewLeaseFromLeaseClient(leaseRetrier{clientv3.RetryLeaseClient(c), r}, c, 0)
	return r
}

// refused reports whether a server has refused a token, so that a request may succeed with another one.
func (r retrier) refused(err error) bool {
	for kind, counts := range map[error]bool{rpctypes.ErrInvalidAuthToken: true, rpctypes.ErrAuthOldRevision: true, rpctypes.ErrUserEmpty: r.password} {
		if counts && (errors.Is(err, kind) || errors.Is(rpctypes.Error(err), kind)) {
			return true
		}
	}
	return false
}

// repeat sends a request until its token is accepted, ctx ends, or the server has refused tokens that cannot have
// expired for too long. send logs in before its last attempt, so it lasts at least as long as that token lived.
func repeat[A any](ctx context.Context, r retrier, send func() (A, error)) (answer A, err error) {
	pause := backoff.Backoff{Min: tokenPause / 10, Max: tokenPause}
	young := time.Now() // since then no token can have expired
	for {
		sent := time.Now()
		answer, err = send()
		if time.Since(sent) >= tokenLife {
			young = time.Now()
		}
		if !r.refused(err) || time.Since(young) > tokenPatience || !backoff.Sleep(ctx, pause.Next()) {
			return answer, err
		}
	}
}

// A kvRetrier repeats the requests for keys.
type kvRetrier struct {
	pb.KVClient
	r retrier
}

// Range implements pb.KVClient.
func (k kvRetrier) Range(ctx context.Context, in *pb.RangeRequest, opts ...grpc.CallOption) (*pb.RangeResponse, error) {
	return repeat(ctx, k.r, func() (*pb.RangeResponse, error) { return k.KVClient.Range(ctx, in, opts...) })
}

// Put implements pb.KVClient.
func (k kvRetrier) Put(ctx context.Context, in *pb.PutRequest, opts ...grpc.CallOption) (*pb.PutResponse, error) {
	return repeat(ctx, k.r, func() (*pb.PutResponse, error) { return k.KVClient.Put(ctx, in, opts...) })
}

// DeleteRange implements pb.KVClient.
func (k kvRetrier) DeleteRange(ctx context.Context, in *pb.DeleteRangeRequest, opts ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	return repeat(ctx, k.r, func() (*pb.DeleteRangeResponse, error) { return k.KVClient.DeleteRange(ctx, in, opts...) })
}

// Txn implements pb.KVClient.
func (k kvRetrier) Txn(ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	return repeat(ctx, k.r, func() (*pb.TxnResponse, error) { return k.KVClient.Txn(ctx, in, opts...) })
}

// Compact implements pb.KVClient.
func (k kvRetrier) Compact(ctx context.Context, in *pb.CompactionRequest, opts ...grpc.CallOption) (*pb.CompactionResponse, error) {
	return repeat(ctx, k.r, func() (*pb.CompactionResponse, error) { return k.KVClient.Compact(ctx, in, opts...) })
}

// A leaseRetrier repeats the requests that begin and end a lease. kvdbsync.Renewal repeats renewals.
type leaseRetrier struct {
	pb.LeaseClient
	r retrier
}

// LeaseGrant implements pb.LeaseClient.
func (l leaseRetrier) LeaseGrant(ctx context.Context, in *pb.LeaseGrantRequest, opts ...grpc.CallOption) (*pb.LeaseGrantResponse, error) {
	return repeat(ctx, l.r, func() (*pb.LeaseGrantResponse, error) { return l.LeaseClient.LeaseGrant(ctx, in, opts...) })
}

// LeaseRevoke implements pb.LeaseClient.
func (l leaseRetrier) LeaseRevoke(ctx context.Context, in *pb.LeaseRevokeRequest, opts ...grpc.CallOption) (*pb.LeaseRevokeResponse, error) {
	return repeat(ctx, l.r, func() (*pb.LeaseRevokeResponse, error) { return l.LeaseClient.LeaseRevoke(ctx, in, opts...) })
}
