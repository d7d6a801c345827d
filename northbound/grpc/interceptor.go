package grpc

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/reach"
)

// An interceptor refuses calls for other agents, ends a call that panics with an error, so
// that one call cannot end the agent, and logs calls that may change something, with who sends them.
type interceptor struct {
	log   *slog.Logger
	label string // of the agent; empty: none
	calls bool   // log all
}

// unary wraps the handler of a request with one answer. The error of the handler, or of
// its panic, becomes the status of the answer.
func (i interceptor) unary(ctx context.Context, req any, info *rpc.UnaryServerInfo, handle rpc.UnaryHandler) (reply any, err error) {
	ctx, leave := whileThere(ctx)
	defer leave()
	err = i.call(ctx, info.FullMethod, func() (err error) {
		err = i.addressed(ctx, func(header metadata.MD) error { return rpc.SetHeader(ctx, header) })
		if err == nil {
			reply, err = handle(ctx, req)
		}
		return err
	})
	return reply, err
}

func (i interceptor) stream(srv any, stream rpc.ServerStream, info *rpc.StreamServerInfo, handle rpc.StreamHandler) error {
	ctx, leave := whileThere(stream.Context())
	defer leave()
	stream = presentStream{stream, ctx}
	return i.call(ctx, info.FullMethod, func() error {
		if err := i.addressed(stream.Context(), stream.SetHeader); err != nil {
			return err
		}
		return handle(srv, stream)
	})
}

// addressed names the agent's label in the header of the answer, and refuses a call for another
// agent: a client that knows an address of this host may not know which agent listens there.
// Clients that name no label are served.
func (i interceptor) addressed(ctx context.Context, set func(metadata.MD) error) error {
	if i.label == "" {
		return nil
	}
	if err := set(metadata.Pairs(reach.LabelKey, i.label)); err != nil {
		return err
	}
	for _, expected := range metadata.ValueFromIncomingContext(ctx, reach.LabelKey) {
		if expected != "" && expected != i.label {
			return status.Errorf(codes.FailedPrecondition, "this agent has the label %s, and the request is for %s", i.label, expected)
		}
	}
	return nil
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
	if service, name, _ := strings.Cut(method[1:], "/"); changes(service, name) {
		i.log.Info("a client has asked for a change", "by", callerOf(ctx), "request", method, "err", err)
	}
	if i.calls {
		i.log.Info("gRPC call", "method", method, "client", callerOf(ctx), "code", status.Code(err).String(), "took", time.Since(begun), "err", err)
	}
	return err
}
