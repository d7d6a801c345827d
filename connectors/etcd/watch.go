package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A watch is one Watch under way.
type watch struct {
	client  *client
	log     *slog.Logger
	timeout time.Duration
	alone   bool // no other user of the client
	prefix  string
	emit    func(kvdbsync.Batch) error
	at      position
	seen    int64 // revision of the last emitted batch
	vigil   vigil
	bounds  kvdbsync.Bounds
}

// keys is the range of keys that begin with the prefix.
func (w *watch) keys() (key, end string) {
	if w.prefix == "" {
		return "\x00", "\x00" // this means all keys
	}
	return w.prefix, clientv3.GetPrefixRangeEnd(w.prefix)
}

// follow emits the changes after the listing, until the stream ends.
func (w *watch) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	listed := w.at
	w.vigil.begin = listed.rev + 1
	w.vigil.now = func(ctx context.Context) (*pb.ResponseHeader, error) {
		header, err := w.now(ctx)
		if err != nil {
			return nil, err
		}
		return header, listed.checkHeader(header)
	}
	stream, err := w.open(ctx, cancel)
	if err != nil {
		return fmt.Errorf("watching %s in etcd: %w", w.prefix, err)
	}
	beside.Go(func() {
		if err := guard.Run(func() error { w.vigil.keep(ctx, stream, cancel); return nil }); err != nil {
			cancel(err)
		}
	})
	for {
		r, err := receive(stream, w.vigil.hear, w.bounds)
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
	late := time.AfterFunc(w.timeout, func() { cancel(fmt.Errorf("no answer within %v", w.timeout)) })
	defer late.Stop()
	stream, header, err := w.create(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return nil, err
	}
	return stream, w.confirm(ctx, header)
}

// create begins the watch after the listed revision, and waits for its confirmation. It uses the bare protocol: the library's watcher hides reconnects, and the fragments of a revision.
func (w *watch) create(ctx context.Context) (pb.Watch_WatchClient, *pb.ResponseHeader, error) {
	stream, err := pb.NewWatchClient(w.client.ActiveConnection()).Watch(ctx)
	if err != nil {
		return nil, nil, rpctypes.Error(err)
	}
	key, end := w.keys()
	request := &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(key), RangeEnd: []byte(end), StartRevision: w.vigil.begin,
		ProgressNotify: true, Fragment: true,
	}}
	if err := stream.Send(&pb.WatchRequest{RequestUnion: request}); err != nil {
		return nil, nil, rpctypes.Error(err)
	}
	r, err := receive(stream, w.vigil.hear, w.bounds)
	if err != nil {
		return nil, nil, err
	}
	return stream, r.Header, nil
}

// confirm checks that the watching server has the listed data. A member may be behind the
// one that answered the listing. Only the cluster as a whole can tell that.
func (w *watch) confirm(ctx context.Context, header *pb.ResponseHeader) error {
	if header.Revision >= w.at.rev {
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
