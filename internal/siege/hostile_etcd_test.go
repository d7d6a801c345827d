package siege

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// hostileEtcd answers as an etcd that is broken in all its answers.
func hostileEtcd(ctx context.Context, t *target) error {
	server := grpc.NewServer(grpc.MaxSendMsgSize(math.MaxInt32))
	e := &brokenEtcd{ctx: ctx, struck: t.struck, root: rootOf(t.label)}
	pb.RegisterKVServer(server, e)
	pb.RegisterWatchServer(server, e)
	pb.RegisterLeaseServer(server, e)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if err := server.Serve(t.etcd); !errors.Is(err, grpc.ErrServerStopped) {
		return unlessOver(ctx, err)
	}
	return nil
}

type brokenEtcd struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	pb.UnimplementedLeaseServer
	ctx    context.Context // of the attack
	struck func()
	root   string
	calls  atomic.Int64
}

// next is the number of a call, from 0.
func (e *brokenEtcd) next() int {
	e.struck()
	return int(e.calls.Add(1)) - 1
}

func (e *brokenEtcd) header(revision int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: 1, MemberId: 1, Revision: revision, RaftTerm: 1}
}

func (e *brokenEtcd) pair(name, value string) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte(e.root + linux(name)), Value: []byte(value), CreateRevision: 1, ModRevision: 5, Version: 1}
}

// Range answers every other call as a sound etcd with no keys, so that watches begin.
func (e *brokenEtcd) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	n := e.next()
	if n%2 == 0 {
		return &pb.RangeResponse{Header: e.header(10)}, nil
	}
	answers := []*pb.RangeResponse{
		{},
		{Header: e.header(10), More: true},
		{More: true, Count: math.MaxInt64},
		{Header: e.header(10), Kvs: []*mvccpb.KeyValue{{}, {}}, Count: -1},
		{Header: e.header(-7), Kvs: []*mvccpb.KeyValue{e.pair("a", "{}")}},
		{Header: e.header(10), Kvs: []*mvccpb.KeyValue{{Key: []byte("/elsewhere"), Value: r.Key}}, More: true, Count: 2},
		{Header: e.header(10), Kvs: []*mvccpb.KeyValue{e.pair("same", "{}")}, More: true, Count: 1 << 40},
		{Header: e.header(math.MaxInt64), Kvs: []*mvccpb.KeyValue{e.pair("z", "{}"), e.pair("a", "{}")}, Count: 2},
	}
	switch n = n / 2 % (len(answers) + 3); n - len(answers) {
	case 0:
		return crowded(&pb.RangeResponse{Header: e.header(10)}, 2), nil
	case 1: // the agent reads it, and drops the value
		return e.large(11), nil
	case 2:
		return e.large(100), nil
	}
	return answers[n], nil
}

// large is an answer with a value of so many megabytes.
func (e *brokenEtcd) large(megabytes int) *pb.RangeResponse {
	return &pb.RangeResponse{Header: e.header(10), Kvs: []*mvccpb.KeyValue{e.pair("large", strings.Repeat("x", megabytes<<20))}, Count: 1}
}

// crowded adds to an answer six million empty elements of its list with this number. Each has two bytes,
// and would take a hundred in the agent.
func crowded[M proto.Message](answer M, number protowire.Number) M {
	element := protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), nil)
	answer.ProtoReflect().SetUnknown(bytes.Repeat(element, 6_000_000))
	return answer
}

// Txn answers with too many results, and with fewer results than there were operations.
func (e *brokenEtcd) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	if e.next()%2 == 0 {
		return crowded(&pb.TxnResponse{Header: e.header(10), Succeeded: true}, 3), nil
	}
	return &pb.TxnResponse{Header: e.header(10), Succeeded: true, Responses: []*pb.ResponseOp{{}, {}}}, nil
}

// Watch answers with broken events until the client has enough of it.
func (e *brokenEtcd) Watch(stream pb.Watch_WatchServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	n := e.next()
	answers := [][]*pb.WatchResponse{
		{{}},
		{{Header: e.header(10), Created: true}, {Header: e.header(11), Events: []*mvccpb.Event{{}, {}}}},
		{{Header: e.header(10), Created: true}, {Events: []*mvccpb.Event{{Kv: e.pair("a", "{}")}}}},
		{{Header: e.header(10), Created: true}, {Header: e.header(11), Events: []*mvccpb.Event{{Type: 77, Kv: e.pair("a", "{}")}}, WatchId: 99}},
		{{Header: e.header(10), Created: true, Canceled: true, CompactRevision: math.MaxInt64, CancelReason: strings.Repeat("r", 1<<20)}},
		{{Header: e.header(10), Created: true}, {Header: e.header(10), Canceled: true}},
		{{Header: e.header(10), Created: true}, {Header: e.header(12), Fragment: true, Events: []*mvccpb.Event{{Kv: e.pair("a", "{}")}}}},
	}
	if n%3 == 0 {
		answers[0] = []*pb.WatchResponse{{Header: e.header(10), Created: true}, crowded(&pb.WatchResponse{Header: e.header(11)}, 11)}
	}
	for _, r := range answers[n%len(answers)] {
		if err := stream.Send(r); err != nil {
			return err
		}
	}
	return e.flood(stream, n)
}

// flood sends parts of an answer that never ends, or nothing, until the client leaves.
func (e *brokenEtcd) flood(stream pb.Watch_WatchServer, n int) error {
	for i := 0; n%2 == 0 && i < 20_000; i++ {
		kv := e.pair(fmt.Sprintf("flood%d", i), strings.Repeat("f", 1000))
		kv.ModRevision = int64(20 + i)
		if err := stream.Send(&pb.WatchResponse{Header: e.header(kv.ModRevision), Fragment: n%4 == 0, Events: []*mvccpb.Event{{Kv: kv}}}); err != nil {
			return err
		}
	}
	select {
	case <-stream.Context().Done():
	case <-e.ctx.Done():
	}
	return nil
}

// LeaseGrant grants what is no lease.
func (e *brokenEtcd) LeaseGrant(context.Context, *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	return []*pb.LeaseGrantResponse{{}, {ID: -1, TTL: -1}, {ID: 1, TTL: math.MaxInt64}, {ID: 1, TTL: 0, Error: "no"}}[e.next()%4], nil
}

// LeaseKeepAlive floods the client with answers for other leases.
func (e *brokenEtcd) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	e.next()
	for i := range 10_000 {
		if err := stream.Send(&pb.LeaseKeepAliveResponse{ID: int64(i), TTL: -1}); err != nil {
			return err
		}
	}
	return nil
}
