package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A watch is one Watch under way.
type watch struct {
	client   *client
	log      *slog.Logger
	timeout  time.Duration
	alone    bool // no other user of the client
	prefix   string
	emit     func(kvdbsync.Batch) error
	at       position
	cluster  *atomic.Uint64 // known to the Connector
	seen     int64          // revision of the last emitted batch
	watchdog watchdog
	bounds   kvdbsync.Bounds

	witnesses witnesses
}

// keys is the range of keys that begin with the prefix.
func (w *watch) keys() (key, end string) {
	if w.prefix == "" {
		return "\x00", "\x00" // this means all keys
	}
	return w.prefix, clientv3.GetPrefixRangeEnd(w.prefix)
}

// follow emits the last batch of the listing and the changes after it, until the stream ends. It opens the stream
// first: one of the endpoints may belong to another cluster, and its listing must have no effect.
func (w *watch) follow(ctx context.Context, last kvdbsync.Batch) error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	listed := w.at
	w.watchdog.begin = listed.rev + 1
	w.watchdog.now = func(ctx context.Context) (*pb.ResponseHeader, error) {
		header, err := w.now(ctx)
		if err != nil {
			return nil, err
		}
		return header, listed.checkHeader(header)
	}
	w.watchdog.compare = w.compare
	w.watchdog.second = w.answers
	stream, err := w.open(ctx, cancel)
	if err != nil {
		return fmt.Errorf("watching %s in etcd: %w", w.prefix, err)
	}
	w.cluster.Store(listed.cluster)
	if err := w.emit(last); err != nil {
		return err
	}
	beside.Go(func() {
		if err := guard.Run(func() error { w.watchdog.keep(ctx, stream, cancel); return nil }); err != nil {
			cancel(err)
		}
	})
	for {
		r, err := receive(stream, w.watchdog.hear, w.bounds)
		if err == nil {
			err = w.at.check(r)
		}
		if err != nil {
			return fmt.Errorf("watching %s in etcd: %w", w.prefix, because(ctx, err))
		}
		if asked(r) {
			continue
		}
		w.at.rev = r.Header.Revision
		w.witnesses.changed(r.Events)
		for _, b := range batches(r.Events, r.Header.Revision, w.bounds) {
			if err := w.next(b); err != nil {
				return err
			}
		}
	}
}

// next emits a batch, if it is newer than the last one. Servers have been known to send an
// event once more, and late.
func (w *watch) next(b kvdbsync.Batch) error {
	if len(b.Events) > 0 {
		if b.Rev <= w.seen {
			return fmt.Errorf("watching %s in etcd: %w: to an event of revision %d from %d", w.prefix, ErrWentBack, b.Rev, w.seen)
		}
		w.seen = b.Rev
	}
	return w.emit(b)
}

// open begins the stream and waits for the server's confirmation of the watch.
func (w *watch) open(ctx context.Context, cancel context.CancelCauseFunc) (pb.Watch_WatchClient, error) {
	key, end := w.keys()
	stream, header, err := w.create(ctx, cancel, w.watchdog.hear, &pb.WatchCreateRequest{
		Key: []byte(key), RangeEnd: []byte(end), StartRevision: w.watchdog.begin,
		ProgressNotify: true, Fragment: true,
	})
	if err != nil {
		return nil, err
	}
	return stream, w.confirm(ctx, header)
}

// create begins a watch after the listed revision, and waits for its confirmation. A learner refuses watches. The next
// stream goes to the next endpoint, as the etcd client repeats the requests of a listing.
func (w *watch) create(ctx context.Context, cancel context.CancelCauseFunc, hear func(*pb.WatchResponse), request *pb.WatchCreateRequest) (
	stream pb.Watch_WatchClient, header *pb.ResponseHeader, err error,
) {
	late := time.AfterFunc(w.timeout, func() { cancel(fmt.Errorf("no answer within %v", w.timeout)) })
	defer late.Stop()
	fromLearner := rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)
	for range w.client.Endpoints() {
		stream, header, err = w.createOnce(ctx, hear, request)
		if !errors.Is(err, fromLearner) {
			break
		}
	}
	return stream, header, err
}

// createOnce is create at one endpoint. It uses the bare protocol: the library's watcher hides reconnects, and the
// fragments of a revision.
func (w *watch) createOnce(ctx context.Context, hear func(*pb.WatchResponse), request *pb.WatchCreateRequest) (pb.Watch_WatchClient, *pb.ResponseHeader, error) {
	stream, err := pb.NewWatchClient(w.client.ActiveConnection()).Watch(ctx)
	if err == nil {
		err = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: request}})
	}
	if err != nil && !errors.Is(err, io.EOF) { // EOF: receive gets the reason
		return nil, nil, because(ctx, rpctypes.Error(err))
	}
	r, err := receive(stream, hear, w.bounds)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return nil, nil, err
	}
	return stream, r.Header, nil
}

// answers reports whether the server answers a question on a watch of its own, of a key that nobody has. A server
// that has to read the history first may leave a question unanswered, so it is asked several times.
func (w *watch) answers(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	nothing := func(*pb.WatchResponse) {}
	stream, _, err := w.create(ctx, cancel, nothing, &pb.WatchCreateRequest{Key: []byte(w.prefix + "\x00"), StartRevision: w.watchdog.begin})
	if err != nil {
		return false, err
	}
	late, stop := context.WithTimeout(ctx, w.timeout)
	defer stop()
	beside.Go(func() {
		for backoff.Sleep(late, w.timeout/10) {
			if stream.Send(question()) != nil {
				return // the receiver gets the reason
			}
		}
		cancel(errUnanswered)
	})
	for {
		r, err := receive(stream, nothing, w.bounds)
		switch {
		case err == nil && asked(r):
			return true, nil
		case err != nil && errors.Is(context.Cause(ctx), errUnanswered):
			w.log.Info("the etcd servers, or a proxy before them, do not tell whether a watch is alive: one that is silent is only noticed by the listing of anti-entropy (orchestrator.conf)")
			return false, nil
		case err != nil:
			return false, because(ctx, err)
		}
	}
}

// confirm checks that the watching server has the listed data. A member may be behind the
// one that answered the listing, and etcd's gRPC proxy names no cluster when it lets the watch
// share another client's. Only the cluster as a whole can tell then.
func (w *watch) confirm(ctx context.Context, header *pb.ResponseHeader) error {
	if header.ClusterId != 0 && header.Revision >= w.at.rev {
		return w.at.checkHeader(header)
	}
	now, err := w.now(ctx)
	if err != nil {
		return err
	}
	return w.at.checkHeader(now)
}

// now returns the header of an answer of the cluster as a whole, with its revision.
func (w *watch) now(ctx context.Context) (*pb.ResponseHeader, error) {
	ctx, end := w.client.line.bounded(ctx, w.timeout)
	defer end()
	answer, err := w.client.Get(ctx, w.prefix+"\x00", clientv3.WithCountOnly())
	if err != nil {
		return nil, because(ctx, err)
	}
	return answer.Header, nil
}

// A position is the last known state of a cluster.
type position struct {
	cluster uint64
	rev     int64
}

// check compares a response of the watch with the position. For the answer to a question
// it checks only the cluster: older servers may send the answer after later events.
func (p position) check(r *pb.WatchResponse) error {
	if asked(r) && r.Header.ClusterId == p.cluster {
		return nil
	}
	return p.checkHeader(r.Header)
}

// checkHeader compares the header of an answer with the position.
func (p position) checkHeader(h *pb.ResponseHeader) error {
	if h == nil {
		return fmt.Errorf("%w: it has no header", ErrNotEtcd)
	}
	if h.ClusterId != p.cluster {
		return fmt.Errorf("%w: %x, not %x", ErrOtherCluster, h.ClusterId, p.cluster)
	}
	if h.Revision < p.rev {
		return fmt.Errorf("%w: to revision %d from %d", ErrWentBack, h.Revision, p.rev)
	}
	return nil
}
