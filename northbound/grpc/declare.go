package grpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/internal/sender"
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
	metaDryRun = "dry-run"   // true: the values are only checked
	metaSeqNum = "seqnum"    // of the answer: the number of the transaction
)

// DefaultSource is the data source of a request that names none.
const DefaultSource = "grpc"

// A wish is what the metadata of a request asks for.
type wish struct {
	source       string
	revert, wait bool
	dry          bool
}

// wishOf reads the metadata of a request. Of several values under one name the last one
// counts, because proxies append theirs.
func wishOf(ctx context.Context) (w wish, err error) {
	md, _ := metadata.FromIncomingContext(ctx)
	w.source = DefaultSource
	if names := md.Get(metaSource); len(names) > 0 {
		w.source = names[len(names)-1]
	}
	for key, on := range map[string]*bool{metaRevert: &w.revert, metaWait: &w.wait, metaDryRun: &w.dry} {
		if *on, err = flag(md, key); err != nil {
			return w, err
		}
	}
	return w, nil
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

// An outcome is what remains of a request when its transaction has ended.
type outcome struct {
	asked   []asked  // values of the request, each key once
	removed []string // keys of other values that a replacement removed
	seq     string   // the number of the transaction; empty: none was made
}

// An asked is a value that a request has put or removed.
type asked struct {
	key     string
	removal bool
}

// outcomeOf copies what the answer needs, so that nothing else of a request stays in memory while it waits.
func outcomeOf(values []orchestrator.Declared, record *scheduler.Record) (out outcome) {
	known := make(map[string]bool, len(values))
	for _, v := range values {
		if !known[v.Key] {
			known[v.Key] = true
			out.asked = append(out.asked, asked{v.Key, v.Message == nil})
		}
	}
	if record == nil {
		return out
	}
	out.seq = strconv.FormatUint(record.Seq, 10)
	for _, c := range record.Values {
		if c.Value == nil && !known[c.Key] {
			known[c.Key] = true
			out.removed = append(out.removed, c.Key)
		}
	}
	return out
}

// declare makes one transaction of values, and waits until nothing is pending if the caller
// asks for it. The header of the answer has the number of the transaction. The caller keeps neither the values
// nor the request, because the memory of the call is given back before it waits.
func (s *service) declare(ctx context.Context, values []orchestrator.Declared, replace, wait bool) (outcome, error) {
	w, err := wishOf(ctx)
	if err != nil {
		return outcome{}, err
	}
	if w.dry {
		if err := s.valid(values); err != nil {
			return outcome{}, s.failure(err)
		}
		return outcome{}, nil
	}
	record, err := s.Layers.Declare(ctx, orchestrator.Request{Layer: w.source, Values: values, Replace: replace, Revert: w.revert, By: callerOf(ctx)})
	out := outcomeOf(values, record)
	if record != nil {
		_ = rpc.SetHeader(ctx, metadata.Pairs(metaSeqNum, out.seq))
	}
	if err != nil {
		return outcome{}, s.failure(err)
	}
	if !wait && !w.wait {
		return out, nil
	}
	callOf(ctx).release()
	leave, err := s.countAwaited(len(out.asked))
	if err != nil {
		return outcome{}, err
	}
	defer leave()
	keys := make([]string, len(out.asked))
	for i, v := range out.asked {
		keys[i] = v.key
	}
	if err := s.awaitPending(ctx, keys); err != nil {
		return outcome{}, s.failure(err)
	}
	return out, nil
}

// callerOf returns who sends a request: the name in the certificate of the client, if it has one, and where it is.
func callerOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		if secure, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(secure.State.VerifiedChains) > 0 {
			ctx = sender.Named(ctx, sender.OfCertificate(secure.State.VerifiedChains[0][0]))
		}
	}
	return sender.Of(ctx)
}

// valid returns a TxnError of the values that a transaction would refuse. A value without a descriptor in
// this agent is valid.
func (s *service) valid(values []orchestrator.Declared) error {
	var put []scheduler.KeyValue
	for _, v := range values {
		if v.Message != nil {
			put = append(put, scheduler.KeyValue{Key: v.Key, Value: v.Message})
		}
	}
	all, _ := s.Scheduler.Validate(put...).(interface{ Unwrap() []error })
	if all == nil {
		return nil
	}
	refused := &scheduler.TxnError{}
	for _, err := range all.Unwrap() {
		if of, ok := errors.AsType[scheduler.KeyError](err); ok && !errors.Is(err, scheduler.ErrUnimplemented) {
			refused.Failed = append(refused.Failed, scheduler.KeyError{Key: cmp.Or(of.Base, of.Key), Verb: scheduler.Validate, Err: of.Err})
		}
	}
	if len(refused.Failed) == 0 {
		return nil
	}
	return refused
}

// maxAwaited is how many values all calls may wait for at once. One call alone may wait for more.
const maxAwaited = 100_000

// countAwaited counts values that a call waits for, until leave is called.
func (s *service) countAwaited(values int) (leave func(), err error) {
	more := int64(values)
	if all := s.awaited.Add(more); all > maxAwaited && all > more {
		s.awaited.Add(-more)
		return nil, status.Errorf(codes.ResourceExhausted, "the values are declared, but calls wait for %d values already; the maximum is %d with those of this call", all-more, maxAwaited)
	}
	return func() { s.awaited.Add(-more) }, nil
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
