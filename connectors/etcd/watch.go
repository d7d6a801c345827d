package etcd

import (
	"context"
	"fmt"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A page of a listing has so many pairs at first, and then as many as make pageBytes:
// few enough that others who use the server are not held up, and no fewer, since etcd
// counts all keys that are left for each of them.
const (
	firstPage = 1000
	mostPairs = 20_000
	pageBytes = 2 << 20
)

// nextPage is how many pairs to ask for after a page.
func nextPage(page []*mvccpb.KeyValue) int64 {
	bytes := 0
	for _, kv := range page {
		bytes += len(kv.Key) + len(kv.Value)
	}
	return int64(min(max(pageBytes*len(page)/max(bytes, 1), 1), mostPairs))
}

// A watch is one Watch under way.
type watch struct {
	client  *clientv3.Client
	timeout time.Duration
	prefix  string
	emit    func(kvdbsync.Batch) error
	at      position
	seen    int64 // the revision of what was emitted last
}

// bounds is the range of keys that begin with the prefix.
func (w *watch) bounds() (key, end string) {
	if w.prefix == "" {
		return "\x00", "\x00" // which means all keys
	}
	return w.prefix, clientv3.GetPrefixRangeEnd(w.prefix)
}

// list emits every pair. The first page says which revision all are read at.
func (w *watch) list(ctx context.Context) error {
	key, end := w.bounds()
	for size := int64(firstPage); ; {
		page, err := w.page(ctx, key, end, size)
		if err != nil {
			return fmt.Errorf("listing %s in etcd: %w", w.prefix, err)
		}
		b := kvdbsync.Batch{Rev: w.at.rev, Synced: !page.More, Events: make([]kvdbsync.Event, 0, len(page.Kvs))}
		b.Identity = strconv.FormatUint(w.at.cluster, 16)
		for _, kv := range page.Kvs {
			b.Events = append(b.Events, putEvent(kv))
		}
		if err := w.emit(b); err != nil || b.Synced {
			return err
		}
		key = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		size = nextPage(page.Kvs)
	}
}

func (w *watch) page(ctx context.Context, key, end string, size int64) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	page, err := w.client.Get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(size), clientv3.WithRev(w.at.rev))
	if err != nil {
		return nil, err
	}
	if w.at.rev == 0 {
		w.at = position{cluster: page.Header.ClusterId, rev: page.Header.Revision}
		w.seen = w.at.rev
	}
	return page, w.at.check(page.Header)
}

// follow emits what changes after the listing, until the stream ends.
func (w *watch) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	defer cancel(nil)
	stream, err := w.open(ctx, cancel)
	if err != nil {
		return fmt.Errorf("watching %s in etcd: %w", w.prefix, err)
	}
	for {
		events, header, err := receive(stream)
		if err == nil {
			err = w.at.check(header)
		}
		if err != nil {
			return fmt.Errorf("watching %s in etcd: %w", w.prefix, err)
		}
		w.at.rev = header.Revision
		for _, b := range batches(events, header.Revision) {
			if err := w.next(b); err != nil {
				return err
			}
		}
	}
}

// next emits a batch, if it comes after what was emitted before. Servers have been
// known to send an event once more, and late.
func (w *watch) next(b kvdbsync.Batch) error {
	if len(b.Events) > 0 {
		if b.Rev <= w.seen {
			return fmt.Errorf("watching %s in etcd: %w: to an event of revision %d from %d", w.prefix, ErrWentBack, b.Rev, w.seen)
		}
		w.seen = b.Rev
	}
	return w.emit(b)
}

// open begins the stream and waits for the server to say that it watches.
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

func (w *watch) create(ctx context.Context) (pb.Watch_WatchClient, *pb.ResponseHeader, error) {
	stream, err := pb.NewWatchClient(w.client.ActiveConnection()).Watch(ctx, streamOptions()...)
	if err != nil {
		return nil, nil, rpctypes.Error(err)
	}
	key, end := w.bounds()
	request := &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(key), RangeEnd: []byte(end), StartRevision: w.at.rev + 1,
		ProgressNotify: true, Fragment: true,
	}}
	if err := stream.Send(&pb.WatchRequest{RequestUnion: request}); err != nil {
		return nil, nil, rpctypes.Error(err)
	}
	_, header, err := receive(stream)
	return stream, header, err
}

// confirm makes sure that the server that watches has the data that was listed.
// A member may be late, and then is behind what another has listed; only the
// cluster as a whole can tell that it is behind.
func (w *watch) confirm(ctx context.Context, header *pb.ResponseHeader) error {
	if header.Revision >= w.at.rev {
		return w.at.check(header)
	}
	now, err := w.client.Get(ctx, w.prefix+"\x00", clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	return w.at.check(now.Header)
}

// A position is what has been seen of a cluster.
type position struct {
	cluster uint64
	rev     int64
}

// check compares the header of an answer with the position.
func (p position) check(h *pb.ResponseHeader) error {
	if h.ClusterId != p.cluster {
		return fmt.Errorf("%w: %x, not %x", ErrOtherCluster, h.ClusterId, p.cluster)
	}
	if h.Revision < p.rev {
		return fmt.Errorf("%w: to revision %d from %d", ErrWentBack, h.Revision, p.rev)
	}
	return nil
}
