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

// ErrSilent says that the server, or what stands in between, holds the watch and says
// nothing on it any more.
var ErrSilent = errors.New("the watch is silent")

// askAfter is how long a watch may be silent before the server is asked, on the watch
// itself, how far it has come. gRPC's pings cannot replace that: a load balancer answers
// them, and may have lost the watch.
const askAfter = 8 * time.Second

// firstAskAfter is the same until the server has answered once. By then it has caught up
// with the revision that the watch began at; before, it does not answer.
const firstAskAfter = time.Second

// What has never answered may be silent, or unable to answer: etcd's own gRPC proxy does
// not hand the question on. So a watch on which that often nothing was answered ends,
// as a silent one, and after that many of them the question is given up.
const (
	firstAsks    = 2
	firstWatches = 2
)

// A talent is whether the servers answer such questions, as the watches of a Connector
// have learned.
type talent struct {
	answers    atomic.Bool
	unanswered atomic.Int32 // watches that ended without an answer, while none was ever answered
}

// lacking tells that the servers do not answer.
func (t *talent) lacking() bool { return !t.answers.Load() && t.unanswered.Load() >= firstWatches }

// A vigil makes sure that a watch is not silent.
type vigil struct {
	after   time.Duration // askAfter
	timeout time.Duration // to answer
	talent  *talent
	heard   kvdbsync.Pulse // what the watch says
}

// hear notes that the watch said something.
func (v *vigil) hear(r *pb.WatchResponse) {
	if asked(r) {
		v.talent.answers.Store(true)
	}
	v.heard.Beat()
}

// asked tells the answer to a question from what a server says by itself.
func asked(r *pb.WatchResponse) bool { return r.WatchId == noWatch && len(r.Events) == 0 }

// noWatch is the ID in the answer to a question, which belongs to all watches of a stream.
const noWatch = -1

// keep asks on the stream whenever the watch is silent, and ends it when no answer comes.
// It returns when ctx ends, or when the servers do not answer such questions; then only the
// listing from time to time finds a silent watch.
func (v *vigil) keep(ctx context.Context, stream sender, end context.CancelCauseFunc) {
	began := time.Now()
	for tries := 0; !v.talent.lacking(); {
		knows := v.talent.answers.Load()
		pause := v.after
		if !knows {
			pause = min(firstAskAfter, v.after)
		}
		if !v.awaitSilence(ctx, began, pause) {
			return
		}
		asked := time.Now()
		if stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{}}) != nil {
			return // the receiver learns why
		}
		if !backoff.Sleep(ctx, v.timeout) {
			return
		}
		switch {
		case knows && !v.heard.After(asked):
			end(fmt.Errorf("%w: no answer within %v", ErrSilent, v.timeout))
			return
		case v.talent.answers.Load():
			tries = 0
		default:
			if tries++; tries == firstAsks {
				v.talent.unanswered.Add(1)
				end(fmt.Errorf("%w: it does not say how far it has come", ErrSilent))
				return
			}
		}
	}
}

// A sender takes questions.
type sender interface{ Send(*pb.WatchRequest) error }

// awaitSilence returns when the watch has said nothing for a time; false: ctx ended.
func (v *vigil) awaitSilence(ctx context.Context, began time.Time, pause time.Duration) bool {
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
