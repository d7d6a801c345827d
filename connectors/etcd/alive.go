package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/kvdbsync"
)

// ErrSilent means that the watch is open, but the server or a proxy before it
// sends nothing any more.
var ErrSilent = errors.New("the watch is silent")

// errUnanswered ends a watch whose only purpose are questions.
var errUnanswered = errors.New("no answer")

// askAfter is the longest silence of a watch. After it the server is asked for its
// progress, on the stream of the watch. gRPC's pings cannot replace that: a load balancer
// answers them, and may have lost the watch.
const askAfter = 8 * time.Second

// firstAskAfter replaces askAfter until the first answer.
const firstAskAfter = time.Second

// firstAsks is the number of questions of a watch after which a server that has never answered
// may be silent, or unable to answer: etcd's own gRPC proxy does not forward the question.
// The answer to a second watch tells which.
const firstAsks = 2

// A support says whether the servers answer such questions. All watches of a Connector
// share it.
type support struct {
	answers atomic.Bool
	lacks   atomic.Bool // a second watch got no answer, either, before any answer to the Connector
}

// lacking reports that the servers do not answer.
func (s *support) lacking() bool { return s.lacks.Load() && !s.answers.Load() }

// A watchdog ends a watch that is silent.
type watchdog struct {
	after    time.Duration // askAfter
	timeout  time.Duration // for an answer
	progress *support
	begin    int64                                             // first revision of the watch
	heard    kvdbsync.Pulse                                    // by each response of the watch
	newest   atomic.Int64                                      // known revision of the store
	now      func(context.Context) (*pb.ResponseHeader, error) // of the store; an error if it is not as new as the listing
	compare  func(context.Context) error                       // some keys with what the watch knows of them
	second   func(context.Context) (bool, error)               // a second watch gets an answer to a question
}

// hear records a response of the watch.
func (v *watchdog) hear(r *pb.WatchResponse) {
	if asked(r) {
		v.progress.answers.Store(true)
	}
	v.note(r.Header.GetRevision())
	v.heard.Beat()
}

// note records a revision of the store.
func (v *watchdog) note(rev int64) {
	for {
		newest := v.newest.Load()
		if rev <= newest || v.newest.CompareAndSwap(newest, rev) {
			return
		}
	}
}

// question asks for the progress of all watches of a stream.
func question() *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{}}
}

// asked reports whether a response is the answer to a question.
func asked(r *pb.WatchResponse) bool { return r.WatchId == noWatch && len(r.Events) == 0 }

// noWatch is the ID in the answer to a question, which belongs to all watches of a stream.
const noWatch = -1

// keep asks on the stream whenever the watch is silent, and ends the watch if no answer
// comes. It returns when ctx ends.
//
// A watch begins with the revision after the listed one. Until the store has reached it, there is nothing to
// tell, and newer servers (such as 3.7) answer no questions. So the revision of the store is read instead.
//
// Where servers do not answer such questions, the watch is not asked: the revision of the store and some keys are read all
// the time, since etcd's gRPC proxy also hides that the store was restored, as it follows on with a watch of its own.
func (v *watchdog) keep(ctx context.Context, stream sender, end context.CancelCauseFunc) {
	began := time.Now()
	begins := func() bool { return v.newest.Load() < v.begin && !v.progress.lacking() }
	if v.read(ctx, end, begins) && v.ask(ctx, began, stream, end) {
		v.read(ctx, end, v.progress.lacking)
	}
}

// ask asks on the stream until ctx ends. It returns true when the servers turn out not to answer.
func (v *watchdog) ask(ctx context.Context, began time.Time, stream sender, end context.CancelCauseFunc) bool {
	for tries := 0; !v.progress.lacking(); {
		knows := v.progress.answers.Load()
		pause := v.after
		if !knows {
			pause = min(firstAskAfter, v.after)
		}
		if !v.awaitSilence(ctx, began, pause) {
			return false
		}
		asked := time.Now()
		if stream.Send(question()) != nil {
			return false // the receiver reports the reason
		}
		if !backoff.Sleep(ctx, v.timeout) {
			return false
		}
		switch {
		case knows && !v.heard.After(asked):
			end(fmt.Errorf("%w: no answer within %v", ErrSilent, v.timeout))
			return false
		case v.progress.answers.Load():
			tries = 0
		default:
			tries++
			if tries == firstAsks {
				if err := v.judge(ctx); err != nil {
					end(err)
					return false
				}
			}
		}
	}
	return true
}

// judge tells a silent watch, for which it returns an error, from servers that do not answer.
func (v *watchdog) judge(ctx context.Context) error {
	answers, err := v.second(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w, and a second one fails: %w", ErrSilent, err)
	case answers:
		return fmt.Errorf("%w: a second one gets answers", ErrSilent)
	}
	v.progress.lacks.Store(true)
	return nil
}

// read reads the store again and again, as long as needed. It ends the watch if that fails, or if the store is no longer the one
// that was listed, or has gone back. Then, and when ctx has ended, it returns false.
func (v *watchdog) read(ctx context.Context, end context.CancelCauseFunc, needed func() bool) bool {
	for needed() {
		if !backoff.Sleep(ctx, v.after) {
			return false
		}
		newest := v.newest.Load()
		header, err := v.now(ctx)
		if rev := header.GetRevision(); err == nil && rev < newest {
			err = fmt.Errorf("%w: to revision %d from %d", ErrWentBack, rev, newest)
		}
		if err == nil && v.progress.lacking() {
			err = v.compare(ctx)
		}
		if err != nil {
			end(fmt.Errorf("reading the store: %w", err))
			return false
		}
		v.note(header.GetRevision())
	}
	return true
}

// A sender sends questions.
type sender interface{ Send(*pb.WatchRequest) error }

// awaitSilence returns true after a silence of the watch, and false when ctx has ended.
func (v *watchdog) awaitSilence(ctx context.Context, began time.Time, pause time.Duration) bool {
	for {
		left := pause - v.heard.Quiet(began)
		if left <= 0 {
			return true
		}
		if !backoff.Sleep(ctx, left) {
			return false
		}
	}
}
