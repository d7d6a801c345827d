package etcd

import (
	"bytes"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// weight is the weight of a message with at most this one; more: it was refused.
func weight(t *testing.T, m proto.Message, most int64) int64 {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return weigh(m.ProtoReflect().Descriptor(), data, most, mostNested)
}

func TestWeigh(t *testing.T) {
	t.Parallel()
	pair := &mvccpb.KeyValue{Key: []byte("key"), Value: []byte("value"), ModRevision: 5}
	endless := &pb.TxnResponse{}
	for range mostNested {
		endless = &pb.TxnResponse{Responses: []*pb.ResponseOp{{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: endless}}}}
	}
	deep := &pb.TxnResponse{Responses: []*pb.ResponseOp{{Response: &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{pair}}}}}}
	unknown := &pb.RangeResponse{}
	unknown.ProtoReflect().SetUnknown(bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, 1000, protowire.BytesType), nil), 9))
	malformed := &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{pair}}
	malformed.ProtoReflect().SetUnknown([]byte{0xff})
	for name, test := range map[string]struct {
		message proto.Message
		want    int64
	}{
		"nothing":            {&pb.RangeResponse{}, 0},
		"a page":             {&pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 5}, Kvs: []*mvccpb.KeyValue{pair, pair, {}}}, 4 * messageCost},
		"an event":           {&pb.WatchResponse{Events: []*mvccpb.Event{{Kv: pair, PrevKv: pair}}}, 3 * messageCost},
		"a transaction":      {deep, 3 * messageCost},
		"a list of texts":    {&pb.Member{PeerURLs: []string{"", "12"}, Name: "not a list"}, byteCost * (2 + 4)},
		"an unknown field":   {unknown, 0},
		"the end is missing": {malformed, messageCost},
	} {
		if got := weight(t, test.message, 1<<20); got != test.want {
			t.Errorf("%s weighs %d, want %d", name, got, test.want)
		}
	}
	if got := weight(t, endless, 1<<20); got <= 1<<20 {
		t.Errorf("messages within messages weigh %d, want more than is allowed", got)
	}
	crowd := &pb.RangeResponse{Kvs: make([]*mvccpb.KeyValue, 1000)}
	for i := range crowd.Kvs {
		crowd.Kvs[i] = pair
	}
	if got := weight(t, crowd, 10*messageCost); got != 11*messageCost {
		t.Errorf("weighing 1000 pairs ends at %d, want %d", got, 11*messageCost)
	}
}
