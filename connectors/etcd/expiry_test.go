package etcd_test

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// An issuer is a server that numbers its tokens. The test decides which of them have expired.
type issuer struct {
	hostile
	pb.UnimplementedAuthServer
	issued, expired atomic.Int64 // the numbers of the last such tokens
}

// expire makes several tokens expire before a client can use them.
func (i *issuer) expire() { i.expired.Store(i.issued.Load() + 3) }

func (i *issuer) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	return &pb.AuthenticateResponse{Header: head(5), Token: strconv.FormatInt(i.issued.Add(1), 10)}, nil
}

func (i *issuer) DeleteRange(context.Context, *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	return &pb.DeleteRangeResponse{Header: head(5), Deleted: 1}, nil
}

func (i *issuer) LeaseRevoke(context.Context, *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	return &pb.LeaseRevokeResponse{Header: head(5)}, nil
}

// check is an interceptor that refuses expired tokens for the reasons that etcd has.
func (i *issuer) check(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if info.FullMethod == pb.Auth_Authenticate_FullMethodName {
		return handle(ctx, req)
	}
	md, _ := metadata.FromIncomingContext(ctx)
	number, err := strconv.ParseInt(strings.Join(md.Get(rpctypes.TokenFieldNameGRPC), ""), 10, 64)
	if err != nil {
		return nil, rpctypes.ErrGRPCUserEmpty
	}
	if number <= i.expired.Load() {
		return nil, []error{rpctypes.ErrGRPCInvalidAuthToken, rpctypes.ErrGRPCAuthOldRevision, rpctypes.ErrGRPCUserEmpty}[number%3]
	}
	return handle(ctx, req)
}

// On a busy machine a token can expire between the login and the request, several times.
func TestTokensThatExpireAtOnce(t *testing.T) {
	t.Parallel()
	server := &issuer{hostile: hostile{ttl: 3600, txn: &pb.TxnResponse{Header: head(5), Succeeded: true}}}
	cfg := serve(t, server, grpc.UnaryInterceptor(server.check))
	cfg.Username, cfg.Password = "agent", "secret"
	cfg.DialTimeout, cfg.OperationTimeout = testkit.Patience, testkit.Patience
	c := etcd.New(cfg, slog.New(slog.DiscardHandler))
	client, err := c.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var lease kvdbsync.Lease
	for _, op := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"Get", func(ctx context.Context) error { _, err := client.Get(ctx, root+"a"); return err }},
		{"List", func(ctx context.Context) error { _, err := client.List(ctx, root); return err }},
		{"Put", func(ctx context.Context) error { return client.Put(ctx, root+"a", []byte("1")) }},
		{"Delete", func(ctx context.Context) error { _, err := client.Delete(ctx, root+"a"); return err }},
		{"Lease", func(ctx context.Context) (err error) { lease, err = c.Lease(ctx, time.Hour); return err }},
		{"Claim", func(ctx context.Context) error {
			_, err := lease.Claim(ctx, root+"owner", nil, []byte("me"))
			return err
		}},
		{"Close", func(ctx context.Context) error { return lease.Close(ctx) }},
	} {
		server.expire()
		if err := op.do(t.Context()); err != nil {
			t.Fatalf("%s with tokens that expire at once: %v", op.name, err)
		}
		if server.issued.Load() <= server.expired.Load() {
			t.Errorf("%s ended without a valid token", op.name)
		}
	}
	server.expired.Store(1 << 60)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() { done <- client.Put(ctx, root+"a", []byte("1")) }()
	for at := server.issued.Load(); server.issued.Load() < at+2; {
		select {
		case err := <-done:
			t.Fatalf("Put ended before its context: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("Put succeeded without a valid token")
	}
}
