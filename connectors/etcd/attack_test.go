package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// mostShown is more than an error may have, and much less than a server can send.
const mostShown = 4 << 10

// A hostile is a server of which the test has each answer.
type hostile struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	pb.UnimplementedLeaseServer

	fault  error
	page   func(*pb.RangeRequest) *pb.RangeResponse // nil: one key
	events []*pb.WatchResponse                      // after the first; the last is said for ever
	txn    *pb.TxnResponse
	ttl    int64
}

func head(rev int64) *pb.ResponseHeader { return &pb.ResponseHeader{ClusterId: 1, Revision: rev} }

func (h *hostile) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if h.fault != nil {
		return nil, h.fault
	}
	if h.page != nil {
		return h.page(r), nil
	}
	return &pb.RangeResponse{Header: head(5), Kvs: []*mvccpb.KeyValue{{Key: []byte(root + "a"), Value: []byte("1"), ModRevision: 5}}}, nil
}

func (h *hostile) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) { return h.txn, nil }

func (h *hostile) Put(context.Context, *pb.PutRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{Header: head(5)}, nil
}

func (h *hostile) LeaseGrant(context.Context, *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	return &pb.LeaseGrantResponse{Header: head(5), ID: 1, TTL: h.ttl}, nil
}

func (h *hostile) Watch(stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchResponse]) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if err := stream.Send(&pb.WatchResponse{Header: head(5), Created: true}); err != nil {
		return err
	}
	for i := 0; len(h.events) > 0; i++ {
		if err := stream.Send(h.events[min(i, len(h.events)-1)]); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

var tightBounds = kvdbsync.Bounds{Value: 1 << 20, Page: 4 << 20, Listing: 8 << 20}

func (h *hostile) start(t *testing.T) etcd.Config { t.Helper(); return serve(t, h) }

// serve starts a server of those services of etcd that the given one implements.
func serve(t *testing.T, services interface {
	pb.KVServer
	pb.WatchServer
	pb.LeaseServer
}, options ...grpc.ServerOption,
) etcd.Config {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	pb.RegisterKVServer(server, services)
	pb.RegisterWatchServer(server, services)
	pb.RegisterLeaseServer(server, services)
	if auth, ok := services.(pb.AuthServer); ok {
		pb.RegisterAuthServer(server, auth)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	return etcd.Config{Endpoints: []string{l.Addr().String()}, OperationTimeout: testkit.Patience, Bounds: tightBounds}
}

func kvs(keys ...string) (out []*mvccpb.KeyValue) {
	for _, key := range keys {
		out = append(out, &mvccpb.KeyValue{Key: []byte(root + key), Value: []byte("1"), ModRevision: 5})
	}
	return out
}

// filled adds to an answer n empty elements of its list with this number. On the server they take
// only their bytes.
func filled[M proto.Message](answer M, number protowire.Number, n int) M {
	element := protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), nil)
	answer.ProtoReflect().SetUnknown(bytes.Repeat(element, n))
	return answer
}

// The numbers of the lists of answers.
const (
	kvsOfRange, eventsOfWatch, responsesOfTxn = 2, 11, 3
	crowd                                     = 1_900_000 // two bytes each, so a page has room for them
)

func always(r *pb.RangeResponse) func(*pb.RangeRequest) *pb.RangeResponse {
	return func(*pb.RangeRequest) *pb.RangeResponse { return r }
}

// No answer ends the process, or has it hold more than the bounds allow. It ends the watch,
// with an error that says why.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	event := func(kind mvccpb.Event_EventType, kv *mvccpb.KeyValue) []*mvccpb.Event {
		return []*mvccpb.Event{{Type: kind, Kv: kv}}
	}
	number := 0
	for name, test := range map[string]struct {
		server hostile
		want   error
	}{
		"more without keys":      {hostile{page: always(&pb.RangeResponse{Header: head(5), More: true})}, etcd.ErrNotEtcd},
		"page without a header":  {hostile{page: always(&pb.RangeResponse{Kvs: kvs("a")})}, etcd.ErrNotEtcd},
		"negative revision":      {hostile{page: always(&pb.RangeResponse{Header: head(-1)})}, etcd.ErrNotEtcd},
		"the same page for ever": {hostile{page: always(&pb.RangeResponse{Header: head(5), Kvs: kvs("a"), More: true})}, etcd.ErrNotEtcd},
		"keys that go back":      {hostile{page: always(&pb.RangeResponse{Header: head(5), Kvs: kvs("b", "a")})}, etcd.ErrNotEtcd},
		"one key twice":          {hostile{page: always(&pb.RangeResponse{Header: head(5), Kvs: kvs("a", "a")})}, etcd.ErrNotEtcd},
		"new keys for ever": {hostile{page: func(*pb.RangeRequest) *pb.RangeResponse {
			number++
			key := fmt.Sprintf("%010d%s", number, strings.Repeat("x", 100_000))
			return &pb.RangeResponse{Header: head(5), Kvs: kvs(key), More: true}
		}}, kvdbsync.ErrTooMuch},
		"pairs of two bytes":       {hostile{page: always(filled(&pb.RangeResponse{Header: head(5)}, kvsOfRange, crowd))}, kvdbsync.ErrTooMuch},
		"watch without a header":   {hostile{events: []*pb.WatchResponse{{}}}, etcd.ErrNotEtcd},
		"event without a key":      {hostile{events: []*pb.WatchResponse{{Header: head(6), Events: event(mvccpb.Event_PUT, nil)}}}, etcd.ErrNotEtcd},
		"deletion without a key":   {hostile{events: []*pb.WatchResponse{{Header: head(6), Events: event(mvccpb.Event_DELETE, nil)}}}, etcd.ErrNotEtcd},
		"event of an unknown kind": {hostile{events: []*pb.WatchResponse{{Header: head(6), Events: event(7, kvs("a")[0])}}}, etcd.ErrNotEtcd},
		"a reason of megabytes":    {hostile{events: []*pb.WatchResponse{{Header: head(6), Canceled: true, CancelReason: strings.Repeat("x", 2<<20)}}}, etcd.ErrClosed},
		"an error of megabytes":    {hostile{fault: status.Error(codes.Unknown, strings.Repeat("x", 2<<20))}, nil},
		"fragments for ever": {hostile{events: []*pb.WatchResponse{{Header: head(6), Fragment: true, Events: event(mvccpb.Event_PUT, &mvccpb.KeyValue{
			Key: []byte(root + "a"), Value: make([]byte, 100_000), ModRevision: 6})}}}, kvdbsync.ErrTooMuch},
		"empty fragments for ever": {hostile{events: []*pb.WatchResponse{{Header: head(6), Fragment: true}}}, kvdbsync.ErrTooMuch},
		"events of two bytes":      {hostile{events: []*pb.WatchResponse{filled(&pb.WatchResponse{Header: head(6)}, eventsOfWatch, crowd)}}, kvdbsync.ErrTooMuch},
		"message beyond a page": {hostile{events: []*pb.WatchResponse{{Header: head(6), Events: event(mvccpb.Event_PUT, &mvccpb.KeyValue{
			Key: []byte(root + "a"), Value: make([]byte, 5<<20), ModRevision: 6})}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := etcd.New(test.server.start(t), slog.New(slog.DiscardHandler))
			source := kvdbsync.NewSource(kvdbsync.Options{Name: "etcd", Connector: c, Root: root, Bounds: tightBounds, MinBackoff: time.Hour, MaxBackoff: time.Hour})
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			done := make(chan error)
			go func() { done <- source.Run(ctx) }()
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for source.Health().LastErr == nil && ctx.Err() == nil {
				<-tick.C
			}
			last := source.Health().LastErr
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if last != nil && len(last.Error()) > mostShown {
				t.Errorf("the error has %d bytes", len(last.Error()))
			}
			if last == nil || test.want != nil && !errors.Is(last, test.want) || errors.Is(last, guard.ErrPanic) {
				t.Errorf("ended with %v, want %v", last, test.want)
			}
		})
	}
}

func TestHostileLease(t *testing.T) {
	t.Parallel()
	for _, ttl := range []int64{0, -1, 1 << 60} {
		server := hostile{ttl: ttl}
		if _, err := etcd.New(server.start(t), slog.New(slog.DiscardHandler)).Lease(t.Context(), testkit.Patience); !errors.Is(err, etcd.ErrNotEtcd) {
			t.Errorf("a lease of %d s: %v", ttl, err)
		}
	}
	for name, test := range map[string]struct {
		txn  *pb.TxnResponse
		want error
	}{
		"responses of two bytes": {filled(&pb.TxnResponse{Header: head(5)}, responsesOfTxn, crowd), kvdbsync.ErrTooMuch},
		"pairs of a response": {&pb.TxnResponse{Header: head(5), Responses: []*pb.ResponseOp{{Response: &pb.ResponseOp_ResponseRange{
			ResponseRange: filled(&pb.RangeResponse{}, kvsOfRange, crowd)}}}}, kvdbsync.ErrTooMuch},
	} {
		server := hostile{ttl: 60, txn: test.txn}
		lease, err := etcd.New(server.start(t), slog.New(slog.DiscardHandler)).Lease(t.Context(), testkit.Patience)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lease.Claim(t.Context(), root+"owner", nil, []byte("me")); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		_ = lease.Close(t.Context()) // the server cannot revoke it
	}
}

// A value that is too large is dropped, whether a page has room for it or not. All others are
// read, and the key is back once its value is smaller.
func TestValueThatIsTooLarge(t *testing.T) {
	t.Parallel()
	s := start(t, "--max-request-bytes=20000000")
	large := bareClient(t, clientv3.Config{Endpoints: []string{s.etcd.Endpoint}, MaxCallSendMsgSize: 20 << 20})
	put := func(key string, bytes int) {
		t.Helper()
		if _, err := large.Put(s.ctx(), root+key, strings.Repeat("x", bytes)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 { // more than a page
		put(fmt.Sprintf("fits%d", i), 1<<20)
	}
	put("large", 2<<20)
	put("huge", 6<<20)
	s.put(root+"small", "1")
	cfg := etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{s.line.Addr}, Bounds: tightBounds}
	got, synced := map[string]string{}, false
	ctx, cancel := context.WithCancel(s.ctx())
	defer cancel()
	for b, err := range etcd.New(cfg, slog.New(slog.DiscardHandler)).Watch(ctx, root) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			if got[e.Key] = string(e.Value); e.Err != nil {
				got[e.Key] = e.Err.Error()
			}
		}
		switch {
		case b.Synced:
			synced = true
			put("small", 2<<20)
		case synced && len(b.Events) > 0 && got[root+"huge"] != "2":
			s.put(root+"huge", "2")
		case synced && len(b.Events) > 0:
			cancel()
		}
		if b.Synced && got[root+"huge"] != "too large: the value has more bytes than max-value-size allows, 1048576" {
			t.Errorf("huge: %.100s", got[root+"huge"])
		}
	}
	dropped := "too large: the value has 2097152 bytes; max-value-size allows 1048576"
	if len(got) != 9 || got[root+"large"] != dropped || got[root+"small"] != dropped || got[root+"huge"] != "2" || len(got[root+"fits5"]) != 1<<20 {
		for key, text := range got {
			t.Errorf("%s: %.80s", key, text)
		}
	}
	client := s.dial(cfg)
	if _, err := client.Get(s.ctx(), root+"large"); !errors.Is(err, kvdbsync.ErrTooMuch) || !strings.Contains(err.Error(), root+"large") {
		t.Errorf("Get: %v", err)
	}
	if _, err := client.List(s.ctx(), root); !errors.Is(err, kvdbsync.ErrTooMuch) || !strings.Contains(err.Error(), root+"large") {
		t.Errorf("List: %v", err)
	}
}
