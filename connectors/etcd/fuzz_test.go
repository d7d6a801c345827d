package etcd

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/kvdbsync"
)

// FuzzAnswers has the connector take any page of a listing and any response of a watch.
func FuzzAnswers(f *testing.F) {
	add := func(m proto.Message) {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	h := &pb.ResponseHeader{ClusterId: 1, Revision: 5}
	kv := &mvccpb.KeyValue{Key: []byte("k"), Value: []byte("v"), ModRevision: 5}
	add(&pb.RangeResponse{Header: h, Kvs: []*mvccpb.KeyValue{kv}, More: true})
	add(&pb.RangeResponse{Header: h, More: true})
	add(&pb.RangeResponse{Kvs: []*mvccpb.KeyValue{{}}})
	add(&pb.WatchResponse{Header: h, Events: []*mvccpb.Event{{Kv: kv}, {Type: mvccpb.Event_DELETE, Kv: kv}}})
	add(&pb.WatchResponse{Header: h, Events: []*mvccpb.Event{{}}, Fragment: true})
	add(&pb.WatchResponse{Canceled: true, CancelReason: "why", CompactRevision: 7})
	bounds := kvdbsync.Bounds{Value: 10, Page: 100, Listing: 1000}
	at := position{cluster: 1, rev: 5}
	f.Fuzz(func(t *testing.T, said []byte) {
		for _, m := range []proto.Message{&pb.RangeResponse{}, &pb.WatchResponse{}, &pb.TxnResponse{}} {
			got := weigh(m.ProtoReflect().Descriptor(), said, 1<<40, mostNested)
			if proto.Unmarshal(said, m) == nil && weight(t, m, 1<<40) > got {
				t.Errorf("%x weighs %d, and decoded more", said, got)
			}
		}
		var listed pb.RangeResponse
		if proto.Unmarshal(said, &listed) == nil {
			got := (*clientv3.GetResponse)(&listed)
			if checkPage(got, "", noEnd) == nil {
				_ = at.checkHeader(got.Header)
				w := watch{bounds: bounds}
				for _, kv := range got.Kvs {
					if e := w.listed(kv, false); len(e.Value) > 10 || e.Value == nil && e.Err == nil {
						t.Errorf("a value of %d bytes", len(e.Value))
					}
				}
				if got.More {
					_ = got.Kvs[len(got.Kvs)-1].Key
				}
			}
		}
		var watched pb.WatchResponse
		if proto.Unmarshal(said, &watched) == nil {
			r, err := receive(&responses{&watched}, func(*pb.WatchResponse) {}, bounds)
			if err != nil || at.check(r) != nil {
				return
			}
			for _, b := range batches(r.Events, r.Header.Revision, bounds) {
				for _, e := range b.Events {
					if len(e.Value) > 10 {
						t.Errorf("a value of %d bytes", len(e.Value))
					}
				}
			}
		}
	})
}
