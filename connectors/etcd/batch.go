package etcd

import (
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/kvdbsync"
)

// receive returns the next response, and calls hear with each of its fragments. etcd
// splits a large response into fragments, but never spreads a revision over several
// responses. Fragments that do not end within the bounds are an error.
func receive(stream interface {
	Recv() (*pb.WatchResponse, error)
}, hear func(*pb.WatchResponse), bounds kvdbsync.Bounds) (*pb.WatchResponse, error) {
	var events []*mvccpb.Event
	tally := kvdbsync.NewTally(bounds)
	for {
		r, err := stream.Recv()
		if err != nil {
			return nil, rpctypes.Error(err)
		}
		hear(r)
		if err := failure(r); err != nil {
			return nil, err
		}
		if err := checkEvents(r, &tally); err != nil {
			return nil, err
		}
		events = append(events, r.Events...)
		if !r.Fragment {
			r.Events = events
			return r, nil
		}
	}
}

// checkEvents returns an error if a response lacks a necessary field, and counts its
// bytes.
func checkEvents(r *pb.WatchResponse, tally *kvdbsync.Tally) error {
	if r.Header == nil {
		return fmt.Errorf("%w: it has no header", ErrNotEtcd)
	}
	if err := tally.Page(); err != nil {
		return err
	}
	for _, e := range r.Events {
		switch {
		case e == nil || e.Kv == nil:
			return fmt.Errorf("%w: an event has no key", ErrNotEtcd)
		case e.Type != mvccpb.Event_PUT && e.Type != mvccpb.Event_DELETE:
			return fmt.Errorf("%w: the event of %.200q has the type %d", ErrNotEtcd, e.Kv.Key, e.Type)
		}
		if err := tally.Pair(string(e.Kv.Key), len(e.Kv.Value)); err != nil {
			return err
		}
	}
	return nil
}

// maxReason is the length of the longest reason of a server in bytes.
const maxReason = 1 << 10

// failure returns the server's reason for ending the watch; nil: the watch goes on.
func failure(r *pb.WatchResponse) error {
	switch {
	case r.CompactRevision != 0:
		return fmt.Errorf("%w: the oldest revision is %d", rpctypes.ErrCompacted, r.CompactRevision)
	case r.Canceled && r.CancelReason != "":
		return fmt.Errorf("%w: %s", ErrClosed, printable.Cut(r.CancelReason, maxReason))
	case r.Canceled:
		return ErrClosed
	}
	return nil
}

// batches makes one Batch of each revision. A response without events only tells that
// nothing has changed until now.
func batches(events []*mvccpb.Event, now int64, bounds kvdbsync.Bounds) []kvdbsync.Batch {
	if len(events) == 0 {
		return []kvdbsync.Batch{{Rev: now}}
	}
	var all []kvdbsync.Batch
	for _, e := range events {
		rev := e.Kv.ModRevision
		if n := len(all); n == 0 || all[n-1].Rev != rev {
			all = append(all, kvdbsync.Batch{Rev: rev})
		}
		last := &all[len(all)-1]
		last.Events = append(last.Events, event(e, bounds))
	}
	return all
}

// event converts an event of etcd. A deletion has the revision at which it happened.
func event(e *mvccpb.Event, bounds kvdbsync.Bounds) kvdbsync.Event {
	if e.Type == mvccpb.Event_DELETE {
		return kvdbsync.Event{Key: string(e.Kv.Key), Rev: e.Kv.ModRevision}
	}
	return putEvent(e.Kv, bounds)
}

// putEvent distinguishes an empty value from none, which protobuf does not. It drops a
// value that is too large.
func putEvent(kv *mvccpb.KeyValue, bounds kvdbsync.Bounds) kvdbsync.Event {
	if err := bounds.CheckValue(int64(len(kv.Value))); err != nil {
		return kvdbsync.Event{Key: string(kv.Key), Err: err, Rev: kv.ModRevision}
	}
	value := kv.Value
	if value == nil {
		value = []byte{}
	}
	return kvdbsync.Event{Key: string(kv.Key), Value: value, Rev: kv.ModRevision}
}
