package grpc

import (
	"context"
	"fmt"
	"strconv"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/wait"
)

// Keys of the metadata of a request. docs/grpc.md describes them.
const (
	metaResume = "resume"    // of a subscription: where an earlier one ended
	metaSource = "datasrc"   // the data source, which is the name of the layer
	metaRevert = "revert"    // true: all or nothing
	metaWait   = "wait-done" // true: as wait_done in a message that has it
	metaSeqNum = "seqnum"    // of the answer: the number of the transaction
)

// DefaultSource is the data source of a request that names none.
const DefaultSource = "grpc"

// A wish is what the metadata of a request asks for.
type wish struct {
	source       string
	revert, wait bool
}

// wishOf reads the metadata of a request. Of several values under one name the last one
// counts, because proxies append theirs.
func wishOf(ctx context.Context) (w wish, err error) {
	md, _ := metadata.FromIncomingContext(ctx)
	w.source = DefaultSource
	if names := md.Get(metaSource); len(names) > 0 {
		w.source = names[len(names)-1]
	}
	if w.revert, err = flag(md, metaRevert); err == nil {
		w.wait, err = flag(md, metaWait)
	}
	return w, err
}

// flag reads a truth value; absent is false.
func flag(md metadata.MD, key string) (bool, error) {
	values := md.Get(key)
	if len(values) == 0 {
		return false, nil
	}
	on, err := strconv.ParseBool(values[len(values)-1])
	if err != nil {
		return false, status.Errorf(codes.InvalidArgument, "metadata %s: %.40q: expected true or false", key, values[len(values)-1])
	}
	return on, nil
}

// declare makes one transaction of values, and waits until nothing is pending if the caller
// asks for it. The header of the answer has the number of the transaction.
func (s *service) declare(ctx context.Context, values []orchestrator.Declared, replace, wait bool) (*scheduler.Record, error) {
	w, err := wishOf(ctx)
	if err != nil {
		return nil, err
	}
	record, err := s.Layers.Declare(ctx, orchestrator.Request{Layer: w.source, Values: values, Replace: replace, Revert: w.revert})
	if record != nil {
		_ = rpc.SetHeader(ctx, metadata.Pairs(metaSeqNum, strconv.FormatUint(record.Seq, 10)))
	}
	if err != nil {
		return record, s.failure(err)
	}
	if wait || w.wait {
		keys := make([]string, len(values))
		for i, v := range values {
			keys[i] = v.Key
		}
		if err := s.awaitPending(ctx, keys); err != nil {
			return record, s.failure(err)
		}
	}
	return record, nil
}

// awaitPending waits until none of the keys is pending. It ends a little before the deadline of
// the client: afterwards no answer would reach it.
func (s *service) awaitPending(ctx context.Context, keys []string) error {
	ctx, cancel := s.untilEnd(ctx)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		early := min(time.Until(deadline)/10, 250*time.Millisecond)
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, deadline.Add(-early))
		defer stop()
	}
	err := wait.NonePending(ctx, s.Scheduler, keys...)
	select {
	case <-s.ended:
		if err != nil {
			return fmt.Errorf("%w; %w", orchestrator.ErrStopped, err)
		}
	default:
	}
	return err
}

// untilEnd returns a context that also ends when the server stops.
func (s *service) untilEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-s.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
