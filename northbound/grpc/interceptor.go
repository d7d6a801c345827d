package grpc

import (
	"context"
	"errors"
	"log/slog"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/internal/guard"
)

// An interceptor ends a call that panics with an error, so that one call cannot end the
// agent, and logs calls.
type interceptor struct {
	log   *slog.Logger
	calls bool // log each
}

// unary wraps the handler of a request with one answer. The error of the handler, or of
// its panic, becomes the status of the answer.
func (i interceptor) unary(ctx context.Context, req any, info *rpc.UnaryServerInfo, handle rpc.UnaryHandler) (reply any, err error) {
	err = i.call(ctx, info.FullMethod, func() (err error) {
		reply, err = handle(ctx, req)
		return err
	})
	return reply, err
}

func (i interceptor) stream(srv any, stream rpc.ServerStream, info *rpc.StreamServerInfo, handle rpc.StreamHandler) error {
	return i.call(stream.Context(), info.FullMethod, func() error { return handle(srv, stream) })
}

// call runs a handler. A panic of a handler ends only its own call: the log has the stack,
// and the client gets the code Internal.
func (i interceptor) call(ctx context.Context, method string, do func() error) error {
	begun := time.Now()
	err := guard.Run(do)
	if bug, ok := errors.AsType[*guard.Panic](err); ok {
		i.log.Error("a gRPC call panicked", "method", method, "panic", bug.Value, "stack", bug.Stack)
		err = status.Errorf(codes.Internal, "internal error of the agent: %v", bug.Value)
	}
	if i.calls {
		from := ""
		if p, ok := peer.FromContext(ctx); ok {
			from = p.Addr.String()
		}
		i.log.Info("gRPC call", "method", method, "client", from, "code", status.Code(err).String(), "took", time.Since(begun), "err", err)
	}
	return err
}
