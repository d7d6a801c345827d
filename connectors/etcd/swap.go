package etcd

import (
	"bytes"
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A change of one key on a condition is sent as Kubernetes does it: if the revision of the key is the one that was read, put or
// delete it. Other servers than etcd, such as kine, take no other transaction.

// swap puts value under a key, with a lease, if the key holds old; nil: if it is absent. It returns false if it does not.
func (c *Client) swap(ctx context.Context, key string, old, value []byte, lease clientv3.LeaseID) (done bool, err error) {
	ctx, end := c.client.line.bounded(ctx, c.timeout)
	defer end()
	put := clientv3.OpPut(key, string(value), clientv3.WithLease(lease))
	for !done && err == nil {
		now := &mvccpb.KeyValue{}
		if old != nil {
			now, err = c.read(ctx, key)
			if err != nil || now.ModRevision == 0 || !bytes.Equal(now.Value, old) {
				break
			}
		}
		done, err = c.at(ctx, key, now.ModRevision, put)
		if old == nil {
			break
		}
	}
	if err != nil {
		return false, refused([]kvdbsync.Pair{{Key: key, Value: value}}, because(ctx, err))
	}
	return done, nil
}

// remove deletes a key, and reports whether there was one.
func (c *Client) remove(ctx context.Context, key string) (existed bool, err error) {
	answer, err := c.client.Delete(ctx, key)
	if err == nil {
		return answer.Deleted > 0, nil
	}
	for takesNone(err) {
		now, failed := c.read(ctx, key)
		if failed != nil || now.ModRevision == 0 {
			return false, failed
		}
		done, failed := c.at(ctx, key, now.ModRevision, clientv3.OpDelete(key))
		if done || failed != nil {
			return done, failed
		}
	}
	return false, err
}

// takesNone reports that a server does not know a request, which no etcd says of a deletion.
func takesNone(err error) bool {
	var known rpctypes.EtcdError
	code := status.Code(err)
	return !errors.As(err, &known) && (code == codes.Unknown || code == codes.Unimplemented || code == codes.InvalidArgument)
}

// read returns what a key holds. Its ModRevision is 0 if it is absent.
func (c *Client) read(ctx context.Context, key string) (*mvccpb.KeyValue, error) {
	answer, err := c.client.Get(ctx, key)
	if err != nil || len(answer.Kvs) == 0 || answer.Kvs[0] == nil {
		return &mvccpb.KeyValue{}, err
	}
	return answer.Kvs[0], nil
}

// at executes an operation if the revision of a key is rev; 0: if it is absent. Kubernetes reads the key otherwise, but for one
// that is absent.
func (c *Client) at(ctx context.Context, key string, rev int64, do clientv3.Op) (done bool, err error) {
	txn := c.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", rev)).Then(do)
	if rev != 0 {
		txn = txn.Else(clientv3.OpGet(key))
	}
	answer, err := txn.Commit()
	if err != nil {
		return false, err
	}
	return answer.Succeeded, nil
}
