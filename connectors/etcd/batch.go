package etcd

import (
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/keyplane/keyplane/kvdbsync"
)

// receive returns the next response, put together from the fragments that etcd makes of a
// large one, and calls hear with each of them. etcd does not spread a revision over more
// than one response.
func receive(stream interface {
	Recv() (*pb.WatchResponse, error)
}, hear func(*pb.WatchResponse)) (*pb.WatchResponse, error) {
	var events []*mvccpb.Event
	for {
		r, err := stream.Recv()
		if err != nil {
			return nil, rpctypes.Error(err)
		}
		hear(r)
		if err := failure(r); err != nil {
			return nil, err
		}
		events = append(events, r.Events...)
		if !r.Fragment {
			r.Events = events
			return r, nil
		}
	}
}

// failure is why the server ended the watch; nil: it did not.
func failure(r *pb.WatchResponse) error {
	switch {
	case r.CompactRevision != 0:
		return fmt.Errorf("%w: the oldest revision is %d", rpctypes.ErrCompacted, r.CompactRevision)
	case r.Canceled && r.CancelReason != "":
		return fmt.Errorf("%w: %s", ErrClosed, r.CancelReason)
	case r.Canceled:
		return ErrClosed
	}
	return nil
}

// batches makes one Batch of each revision. Without events the server merely
// told that nothing happened until now.
func batches(events []*mvccpb.Event, now int64) []kvdbsync.Batch {
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
		last.Events = append(last.Events, event(e))
	}
	return all
}

func event(e *mvccpb.Event) kvdbsync.Event {
	if e.Type == mvccpb.Event_DELETE {
		return kvdbsync.Event{Key: string(e.Kv.Key), Rev: e.Kv.ModRevision}
	}
	return putEvent(e.Kv)
}

// putEvent keeps an empty value apart from none: protobuf does not.
func putEvent(kv *mvccpb.KeyValue) kvdbsync.Event {
	value := kv.Value
	if value == nil {
		value = []byte{}
	}
	return kvdbsync.Event{Key: string(kv.Key), Value: value, Rev: kv.ModRevision}
}
