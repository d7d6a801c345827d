package etcd_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A narrow server takes what Kubernetes sends, and nothing else, as kine does: reads, puts, and transactions of one key that
// compare its revision. It has one key.
type narrow struct {
	hostile

	mu  sync.Mutex // guards kv
	rev int64
	kv  *mvccpb.KeyValue // nil: absent
}

func (n *narrow) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := &pb.RangeResponse{Header: head(n.rev + 1)}
	if n.kv != nil {
		out.Kvs, out.Count = []*mvccpb.KeyValue{n.kv}, 1
	}
	return out, nil
}

func (n *narrow) Put(_ context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rev++
	n.kv = &mvccpb.KeyValue{Key: r.Key, Value: r.Value, Lease: r.Lease, ModRevision: n.rev, CreateRevision: n.rev, Version: 1}
	return &pb.PutResponse{Header: head(n.rev)}, nil
}

func (n *narrow) DeleteRange(context.Context, *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	return nil, status.Error(codes.Unknown, "a deletion is not supported")
}

func (n *narrow) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if len(r.Compare) != 1 || r.Compare[0].Target != pb.Compare_MOD || r.Compare[0].Result != pb.Compare_EQUAL || len(r.Success) != 1 ||
		(r.Compare[0].GetModRevision() == 0) != (len(r.Failure) == 0) {
		return nil, status.Error(codes.Unknown, "the transaction is not supported")
	}
	n.mu.Lock()
	now := n.kv.GetModRevision()
	n.mu.Unlock()
	if r.Compare[0].GetModRevision() != now {
		return &pb.TxnResponse{Header: head(n.rev)}, nil
	}
	if put := r.Success[0].GetRequestPut(); put != nil {
		if _, err := n.Put(ctx, put); err != nil {
			return nil, err
		}
	} else {
		n.mu.Lock()
		n.rev, n.kv = n.rev+1, nil
		n.mu.Unlock()
	}
	return &pb.TxnResponse{Header: head(n.rev), Succeeded: true}, nil
}

// All writes of one key work with a server that only takes the transactions of Kubernetes.
func TestServerThatTakesWhatKubernetesSends(t *testing.T) {
	t.Parallel()
	server := &narrow{hostile: hostile{ttl: 60}}
	c := etcd.New(serve(t, server), slog.New(slog.DiscardHandler))
	client, err := c.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, key := t.Context(), root+"a"
	lease, err := c.Lease(ctx, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close(ctx) // the server cannot revoke it
	done := func(what string, got, want bool, err error) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("%s: %t, %v; want %t", what, got, err, want)
		}
	}
	existed, err := client.Delete(ctx, key)
	done("deleting nothing", existed, false, err)
	stored, err := client.PutIfAbsent(ctx, key, []byte("1"))
	done("putting an absent key", stored, true, err)
	stored, err = client.PutIfAbsent(ctx, key, []byte("2"))
	done("putting it again", stored, false, err)
	stored, err = client.PutIfSame(ctx, key, []byte("2"), []byte("3"))
	done("putting where another value is", stored, false, err)
	stored, err = client.PutIfSame(ctx, key, []byte("1"), []byte("3"))
	done("putting where the value is", stored, true, err)
	done("putting", true, true, client.Put(ctx, key, []byte("4")))
	existed, err = client.Delete(ctx, key)
	done("deleting", existed, true, err)
	holds, err := lease.Claim(ctx, key, nil, []byte("me"))
	done("claiming", string(holds) == "me", true, err)
	holds, err = lease.Claim(ctx, key, []byte("other"), []byte("you"))
	done("claiming what another holds", string(holds) == "me", true, err)
	holds, err = lease.Claim(ctx, key, []byte("me"), []byte("you"))
	done("claiming from the holder", string(holds) == "you", true, err)
	done("removing the claim", true, true, lease.Apply(ctx, []kvdbsync.Pair{{Key: key}}))
	if _, err := client.Get(ctx, key); !errors.Is(err, kvdbsync.ErrNotFound) {
		t.Errorf("in the end: %v", err)
	}
}
