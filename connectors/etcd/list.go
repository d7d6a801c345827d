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

// The number of pairs on the first page of a listing. Later pages have a number of bytes: at
// first pageBytes each, and later half of what has been listed. Large pages delay other users of
// the server. Small pages are slow, because etcd counts all remaining keys for each page: a
// million keys of 130 bytes take 6.0 s in pages of pageBytes, and 2.6 s in those of mostBytes
// (etcd 3.7).
const (
	firstPage = 1000
	mostPairs = 80_000
	pageBytes = 2 << 20
	mostBytes = 8 << 20
)

// A pager decides the size of pages, and whether a listing continues after an
// interruption.
type pager struct {
	size   int64 // pairs per request
	most   int64 // largest size; a silence or a refused page lowers it, a page doubles it
	listed int   // bytes of all pages
	tries  int   // interruptions since the last page
}

// newPager begins with a small page, so that a server with large values is not asked for
// too much at once.
func newPager() *pager { return &pager{size: firstPage, most: mostPairs} }

// next returns the number of pairs to request after a page.
func (p *pager) next(page []*mvccpb.KeyValue) int64 {
	bytes := 0
	for _, kv := range page {
		bytes += len(kv.Key) + len(kv.Value)
	}
	p.listed += bytes
	room := min(max(p.listed/2, pageBytes), mostBytes)
	return int64(min(max(room*len(page)/max(bytes, 1), 1), mostPairs))
}

// The number of consecutive interruptions that end a listing. A listing with pages
// continues where it was; one without pages only makes smaller requests.
const (
	mostTries      = 8
	mostFirstTries = 2
)

// got records a page.
func (p *pager) got(page []*mvccpb.KeyValue) {
	p.tries = 0
	if len(page) > 0 {
		p.size = min(p.next(page), p.most)
		p.most = min(2*p.most, mostPairs) // the next values may be small
	}
}

// smaller halves the size of the next page. It returns false if that is not possible.
func (p *pager) smaller() bool {
	if p.size == 1 {
		return false
	}
	p.most = max(p.size/2, 1)
	p.size = p.most
	return true
}

// tooLarge reports that gRPC has refused a message for its size. A refusal by the server
// has the same code.
func tooLarge(err error) bool { return status.Code(err) == codes.ResourceExhausted }

// interrupted reports whether to ask again after err.
func (p *pager) interrupted(err error, hasPages bool) (again bool) {
	p.tries++
	if _, ok := errors.AsType[*silence](err); ok {
		p.most = max(p.size/2, 1)
		p.size = p.most
		return p.tries <= mostFirstTries || hasPages && p.tries <= mostTries
	}
	return hasPages && p.tries <= mostTries && unavailable(err)
}

// unavailable reports that a server could not be reached, stopped, or has no leader.
func unavailable(err error) bool {
	var said rpctypes.EtcdError
	return status.Code(err) == codes.Unavailable || errors.As(err, &said) && said.Code() == codes.Unavailable
}

// list emits every pair but those of the last page, whose batch it returns: the caller emits it once it trusts
// the listing. The first page sets the revision of all pages, so an interrupted listing can continue.
func (w *watch) list(ctx context.Context) (last kvdbsync.Batch, err error) {
	at := newCursor(w.keys())
	pages, listed := newPager(), 0
	retry := backoff.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for {
		page, err := w.page(ctx, at.key, at.end(), pages.size)
		if tooLarge(err) {
			if pages.smaller() {
				continue
			}
			page, err = w.large(ctx, at.key, at.end())
		}
		if err != nil {
			if ctx.Err() != nil || !pages.interrupted(err, w.at.rev != 0) {
				return last, fmt.Errorf("listing %s in etcd: %w", w.prefix, err)
			}
			w.log.Warn("the listing of etcd was interrupted; it goes on", "prefix", w.prefix, "keys", listed, "err", err)
			w.renew(pages.tries)
			backoff.Sleep(ctx, retry.Next())
			continue
		}
		pages.got(page.Kvs)
		w.witnesses.listed(page.Kvs)
		complete := at.pass(page.GetResponse, pages.size)
		b := kvdbsync.Batch{Rev: w.at.rev, Synced: complete, Events: make([]kvdbsync.Event, 0, len(page.Kvs))}
		b.Identity = strconv.FormatUint(w.at.cluster, 16)
		for _, kv := range page.Kvs {
			b.Events = append(b.Events, w.listed(kv, page.large))
		}
		if complete {
			return b, nil
		}
		if len(b.Events) > 0 {
			if err := w.emit(b); err != nil {
				return last, err
			}
		}
		listed += len(page.Kvs)
		retry.Reset()
	}
}

// renew makes the next try use another connection after two consecutive silences: the old
// one may be lost while others work. gRPC would detect that later.
func (w *watch) renew(tries int) {
	if w.alone && tries > 1 {
		w.client.line.hangUp()
	}
}

// A page is a part of a listing.
type page struct {
	*clientv3.GetResponse
	large bool // it has one key, and no answer has room for the value
}

// listed converts a pair of a page. A value that alone exceeds the bound of a message is an
// error of its key.
func (w *watch) listed(kv *mvccpb.KeyValue, large bool) kvdbsync.Event {
	if large {
		return kvdbsync.Event{Key: string(kv.Key), Err: fmt.Errorf("%w: the value has more bytes than max-value-size allows, %d", kvdbsync.ErrTooMuch, w.bounds.Value), Rev: kv.ModRevision}
	}
	return putEvent(kv, w.bounds)
}

// large returns the page of a key with a value that does not fit into an answer.
func (w *watch) large(ctx context.Context, key, end string) (page, error) {
	p, err := w.page(ctx, key, end, 1, clientv3.WithKeysOnly())
	p.large = true
	return p, err
}

// page reads one page. All pages are of the revision of the first, so the listing is one
// state of the store.
func (w *watch) page(ctx context.Context, key, end string, size int64, also ...clientv3.OpOption) (page, error) {
	ctx, cancel := w.client.line.bounded(ctx, w.timeout)
	defer cancel()
	got, err := w.client.Get(ctx, key, append(also, clientv3.WithRange(end), clientv3.WithLimit(size), clientv3.WithRev(w.at.rev))...)
	if err != nil {
		return page{}, because(ctx, err)
	}
	if err := checkPage(got, key, end); err != nil {
		return page{}, err
	}
	if w.at.cluster == 0 {
		w.at.cluster = got.Header.ClusterId
	}
	if err := w.at.checkHeader(got.Header); err != nil {
		return page{}, err
	}
	if w.at.rev == 0 {
		w.at.rev, w.seen = got.Header.Revision, got.Header.Revision
	}
	return page{GetResponse: got}, nil
}

// checkPage returns an error if a page lacks a necessary field, or if its keys do not
// ascend from the requested one to the requested end.
func checkPage(page *clientv3.GetResponse, from, end string) error {
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
	if n := len(page.Kvs); n > 0 && end != noEnd && string(page.Kvs[n-1].Key) >= end {
		return fmt.Errorf("%w: the key %.200q was not asked for", ErrNotEtcd, page.Kvs[n-1].Key)
	}
	return nil
}
