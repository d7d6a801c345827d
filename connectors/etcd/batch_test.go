package etcd

import (
	"errors"
	"io"
	"reflect"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/keyplane/keyplane/kvdbsync"
)

func put(key, value string, rev int64) *mvccpb.Event {
	return &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: rev}}
}

func gone(key string, rev int64) *mvccpb.Event {
	return &mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: rev}}
}

func TestEachRevisionIsOneBatch(t *testing.T) {
	t.Parallel()
	unset := put("empty", "", 9)
	unset.Kv.Value = nil // as protobuf delivers it
	got := batches([]*mvccpb.Event{put("a", "1", 7), gone("b", 7), put("a", "2", 8), unset}, 12, usual)
	want := []kvdbsync.Batch{
		{Rev: 7, Events: []kvdbsync.Event{{Key: "a", Value: []byte("1"), Rev: 7}, {Key: "b", Rev: 7}}},
		{Rev: 8, Events: []kvdbsync.Event{{Key: "a", Value: []byte("2"), Rev: 8}}},
		{Rev: 9, Events: []kvdbsync.Event{{Key: "empty", Value: []byte{}, Rev: 9}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := batches(nil, 12, usual); !reflect.DeepEqual(got, []kvdbsync.Batch{{Rev: 12}}) {
		t.Errorf("of a progress notice: %+v", got)
	}
}

// responses is a stream that yields these and ends.
type responses []*pb.WatchResponse

func (r *responses) Recv() (*pb.WatchResponse, error) {
	if len(*r) == 0 {
		return nil, io.EOF
	}
	next := (*r)[0]
	*r = (*r)[1:]
	return next, nil
}

func TestFragmentsArePutTogether(t *testing.T) {
	t.Parallel()
	stream := &responses{
		{Fragment: true, Header: &pb.ResponseHeader{Revision: 7}, Events: []*mvccpb.Event{put("a", "1", 7)}},
		{Fragment: true, Header: &pb.ResponseHeader{Revision: 7}, Events: []*mvccpb.Event{put("b", "1", 7)}},
		{Header: &pb.ResponseHeader{Revision: 7}, Events: []*mvccpb.Event{put("c", "1", 7)}},
		{Header: &pb.ResponseHeader{Revision: 8}},
	}
	heard := 0
	hear := func(*pb.WatchResponse) { heard++ }
	r, err := receive(stream, hear, usual)
	if err != nil || r.Header.Revision != 7 || len(batches(r.Events, 7, usual)) != 1 || len(r.Events) != 3 || heard != 3 {
		t.Errorf("%+v of %d fragments, %v", r, heard, err)
	}
	if r, err := receive(stream, hear, usual); err != nil || r.Header.Revision != 8 || len(r.Events) != 0 {
		t.Errorf("then %+v, %v", r, err)
	}
	if _, err := receive(stream, hear, usual); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestEveryWayAServerEndsAWatchIsAnError(t *testing.T) {
	t.Parallel()
	ends := map[string]struct {
		last *pb.WatchResponse
		want error
	}{
		"compacted":        {&pb.WatchResponse{Canceled: true, CompactRevision: 5}, rpctypes.ErrCompacted},
		"compacted, alive": {&pb.WatchResponse{CompactRevision: 5}, rpctypes.ErrCompacted},
		"with a reason":    {&pb.WatchResponse{Canceled: true, CancelReason: "permission denied"}, ErrClosed},
		"without":          {&pb.WatchResponse{Canceled: true}, ErrClosed},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			if _, err := receive(&responses{end.last}, func(*pb.WatchResponse) {}, usual); !errors.Is(err, end.want) {
				t.Errorf("got %v, want %v", err, end.want)
			}
		})
	}
}

func TestPosition(t *testing.T) {
	t.Parallel()
	at := position{cluster: 1, rev: 10}
	tests := map[string]struct {
		header *pb.ResponseHeader
		want   error
	}{
		"same":          {&pb.ResponseHeader{ClusterId: 1, Revision: 10}, nil},
		"later":         {&pb.ResponseHeader{ClusterId: 1, Revision: 11}, nil},
		"earlier":       {&pb.ResponseHeader{ClusterId: 1, Revision: 9}, ErrWentBack},
		"other cluster": {&pb.ResponseHeader{ClusterId: 2, Revision: 11}, ErrOtherCluster},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := at.checkHeader(test.header); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestEventsThatComeAgainEndTheWatch(t *testing.T) {
	t.Parallel()
	var emitted []int64
	w := watch{prefix: "/p/", seen: 7, emit: func(b kvdbsync.Batch) error {
		emitted = append(emitted, b.Rev)
		return nil
	}}
	at := func(rev int64) kvdbsync.Batch { return batches([]*mvccpb.Event{put("a", "1", rev)}, rev, usual)[0] }
	for _, b := range []kvdbsync.Batch{at(8), batches(nil, 20, usual)[0], at(9), at(12)} { // a server may tell that it is ahead
		if err := w.next(b); err != nil {
			t.Fatal(err)
		}
	}
	for _, again := range []int64{12, 11, 3} {
		if err := w.next(at(again)); !errors.Is(err, ErrWentBack) {
			t.Errorf("%d again: %v", again, err)
		}
	}
	if want := []int64{8, 20, 9, 12}; !reflect.DeepEqual(emitted, want) {
		t.Errorf("emitted %v, want %v", emitted, want)
	}
}

var usual = kvdbsync.Bounds{}.WithDefaults()
