package etcd

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Settings for the detection of a dead connection. The kernel's probes detect a lost host
// and cost an idle agent nothing; gRPC's detect a server that hangs. gRPC accepts no
// period below 10 s, and etcd closes connections that ask more often than every 5 s.
const (
	tcpProbeAfter  = 3 * time.Second
	tcpProbeEvery  = time.Second
	tcpProbes      = 3
	grpcPingAfter  = 10 * time.Second
	grpcPingWithin = 3 * time.Second
)

// headerSize bounds the headers of an answer in bytes. The text of an error is one of them.
const headerSize = 64 << 10

// A client talks to a cluster on a connection of its own.
type client struct {
	*clientv3.Client
	line   *line
	tokens retrier
}

// newClient returns a client for one user. With a password it has authenticated; otherwise
// the first request connects.
func newClient(ctx context.Context, cfg Config) (*client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("etcd configuration: %w", err)
	}
	password, err := cfg.password()
	if err != nil {
		return nil, fmt.Errorf("etcd configuration: %w", err)
	}
	security, err := cfg.tls()
	if err != nil {
		return nil, fmt.Errorf("etcd configuration: %w", err)
	}
	l := &line{conns: map[*heardConn]bool{}}
	c, err := clientv3.New(clientv3.Config{
		Context:              ctx,
		Endpoints:            cfg.endpoints(),
		DialTimeout:          cfg.DialTimeout,
		DialKeepAliveTime:    grpcPingAfter,
		DialKeepAliveTimeout: grpcPingWithin,
		TLS:                  security,
		Username:             cfg.Username,
		Password:             password,
		MaxUnaryRetries:      2, // the second with a new token
		MaxCallRecvMsgSize:   messageSize(cfg.Bounds),
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(l.dial),
			grpc.WithMaxHeaderListSize(headerSize),
			grpc.WithChainUnaryInterceptor(unary(cfg.Bounds)),
			grpc.WithChainStreamInterceptor(streaming(cfg.Bounds)),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd at %s: %w", strings.Join(cfg.Endpoints, ","), err)
	}
	return &client{Client: c, line: l, tokens: retryTokens(c)}, nil
}

// messageSize returns the size of the largest accepted message. gRPC knows the size of a
// message before it reads it. While a message is decoded, up to three copies of its bytes are
// in memory, so a page of large values is not accepted whole.
func messageSize(b kvdbsync.Bounds) int {
	b = b.WithDefaults()
	return int(min(b.Page, 2*b.Value+largePage, math.MaxInt32))
}

// largePage is the size of a message with no large value in it.
const largePage = 4 << 20
