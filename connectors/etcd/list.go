package etcd

import (
	"bytes"
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

	"github.com/keyplane/keyplane/internal/backoff"
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

// smaller has the next page be half as large, and tells whether it can be.
func (p *pager) smaller() bool {
	if p.size == 1 {
		return false
	}
	p.most = max(p.size/2, 1)
	p.size = p.most
	return true
}

// tooLarge tells that gRPC has refused a message for its size. What a server refuses to
// send ends with the same code.
func tooLarge(err error) bool { return status.Code(err) == codes.ResourceExhausted }

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
	key, end := w.keys()
	pages, listed := newPager(), 0
	retry := backoff.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for {
		page, err := w.page(ctx, key, end, pages.size)
		if tooLarge(err) {
			if pages.smaller() {
				continue
			}
			page, err = w.large(ctx, key, end)
		}
		if err != nil {
			if ctx.Err() != nil || !pages.interrupted(err, w.at.rev != 0) {
				return fmt.Errorf("listing %s in etcd: %w", w.prefix, err)
			}
			w.log.Warn("the listing of etcd was interrupted; it goes on", "prefix", w.prefix, "keys", listed, "err", err)
			w.renew(pages.tries)
			backoff.Sleep(ctx, retry.Next())
			continue
		}
		b := kvdbsync.Batch{Rev: w.at.rev, Synced: !page.More, Events: make([]kvdbsync.Event, 0, len(page.Kvs))}
		b.Identity = strconv.FormatUint(w.at.cluster, 16)
		for _, kv := range page.Kvs {
			b.Events = append(b.Events, w.listed(kv, page.large))
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

// A page is a part of a listing.
type page struct {
	*clientv3.GetResponse
	large bool // it has one key, whose value no answer has room for
}

func (w *watch) listed(kv *mvccpb.KeyValue, large bool) kvdbsync.Event {
	if large {
		return kvdbsync.Event{Key: string(kv.Key), Err: w.bounds.PageTooLarge(), Rev: kv.ModRevision}
	}
	return putEvent(kv, w.bounds)
}

// large is the page of a key whose value does not fit into an answer.
func (w *watch) large(ctx context.Context, key, end string) (page, error) {
	p, err := w.page(ctx, key, end, 1, clientv3.WithKeysOnly())
	p.large = true
	return p, err
}

func (w *watch) page(ctx context.Context, key, end string, size int64, also ...clientv3.OpOption) (page, error) {
	ctx, cancel := w.client.line.bounded(ctx, w.timeout)
	defer cancel()
	got, err := w.client.Get(ctx, key, append(also, clientv3.WithRange(end), clientv3.WithLimit(size), clientv3.WithRev(w.at.rev))...)
	if err != nil {
		return page{}, because(ctx, err)
	}
	if err := checkPage(got, key); err != nil {
		return page{}, err
	}
	if w.at.rev == 0 {
		w.at = position{cluster: got.Header.ClusterId, rev: got.Header.Revision}
		w.seen = w.at.rev
	}
	return page{GetResponse: got}, w.at.checkHeader(got.Header)
}

// checkPage makes sure that a page has all that is used of it, and that it leads on: its keys
// ascend, from the one that was asked for.
func checkPage(page *clientv3.GetResponse, from string) error {
	switch {
	case page.Header == nil:
		return fmt.Errorf("%w: it has no header", ErrNotEtcd)
	case page.Header.Revision < 1:
		return fmt.Errorf("%w: its revision is %d", ErrNotEtcd, page.Header.Revision)
	case page.More && len(page.Kvs) == 0:
		return fmt.Errorf("%w: a page has no keys, and is not the last one", ErrNotEtcd)
	}
	next := []byte(from)
	for _, kv := range page.Kvs {
		if kv == nil {
			return fmt.Errorf("%w: a page has an entry without a key", ErrNotEtcd)
		}
		if bytes.Compare(kv.Key, next) < 0 {
			return fmt.Errorf("%w: the key %.200q comes after %.200q", ErrNotEtcd, kv.Key, next)
		}
		next = append(append(next[:0], kv.Key...), 0)
	}
	return nil
}
