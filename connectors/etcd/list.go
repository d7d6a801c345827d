package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

// A pager decides how large pages are, and whether a listing goes on after an interruption.
type pager struct {
	size  int64 // pairs to ask for
	most  int64 // the largest size, which each silence halves
	tries int   // interruptions since the last page
}

func newPager() *pager { return &pager{size: firstPage, most: mostPairs} }

// How often a listing is interrupted in a row before it ends. One that has pages goes on
// where it was; one without only asks for less.
const (
	mostTries      = 8
	mostFirstTries = 2
)

// got notes a page.
func (p *pager) got(page []*mvccpb.KeyValue) {
	p.tries, p.size = 0, min(nextPage(page), p.most)
}

// interrupted tells whether to ask again after err.
func (p *pager) interrupted(err error, hasPages bool) (again bool) {
	p.tries++
	var quiet *silence
	if errors.As(err, &quiet) {
		p.most = max(p.size/2, 1)
		p.size = p.most
		return p.tries <= mostFirstTries || hasPages && p.tries <= mostTries
	}
	return hasPages && p.tries <= mostTries && unavailable(err)
}

// unavailable tells that a server could not be reached, went away, or has no leader.
func unavailable(err error) bool {
	var said rpctypes.EtcdError
	return status.Code(err) == codes.Unavailable || errors.As(err, &said) && said.Code() == codes.Unavailable
}

// list emits every pair. The first page says which revision all are read at, so a
// listing that was interrupted can go on.
func (w *watch) list(ctx context.Context) error {
	key, end := w.bounds()
	pages, listed := newPager(), 0
	retry := kvdbsync.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for {
		page, err := w.page(ctx, key, end, pages.size)
		if err != nil {
			if ctx.Err() != nil || !pages.interrupted(err, w.at.rev != 0) {
				return fmt.Errorf("listing %s in etcd: %w", w.prefix, err)
			}
			w.log.Warn("the listing of etcd was interrupted; it goes on", "prefix", w.prefix, "keys", listed, "err", err)
			w.renew(pages.tries)
			kvdbsync.Sleep(ctx, retry.Next())
			continue
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
		listed += len(page.Kvs)
		pages.got(page.Kvs)
		retry.Reset()
	}
}

// renew has the next try use another connection, if one was silent twice in a row: it may
// be lost while others work. gRPC would find out later.
func (w *watch) renew(tries int) {
	if w.alone && tries > 1 {
		w.client.line.hangUp()
	}
}

func (w *watch) page(ctx context.Context, key, end string, size int64) (*clientv3.GetResponse, error) {
	ctx, cancel := w.client.line.bounded(ctx, w.timeout)
	defer cancel()
	page, err := w.client.Get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(size), clientv3.WithRev(w.at.rev))
	if err != nil {
		return nil, because(ctx, err)
	}
	if w.at.rev == 0 {
		w.at = position{cluster: page.Header.ClusterId, rev: page.Header.Revision}
		w.seen = w.at.rev
	}
	return page, w.at.checkHeader(page.Header)
}
