package etcd

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/internal/backoff"
)

// mostWitnesses is how many keys a watch compares with the store.
const mostWitnesses = 6

// Witnesses are some keys of a watch with what it knows of them: the newest of the listing, and the first and the last one
// that changed between two comparisons. A store that was restored or emptied, and written to up to the revision that the watch
// had reached, disagrees about them; its revision does not tell, and etcd's gRPC proxy goes on with the watch. Any
// goroutine may call the methods.
type witnesses struct {
	mu          sync.Mutex // guards the fields below
	known       []witness  // the newest last
	first, last witness    // of the changes since the last comparison
}

// A witness is a key with the revision at which it last changed.
type witness struct {
	key  string // "": none
	rev  int64
	gone bool // it was deleted then
}

// listed takes note of a page of a listing.
func (ws *witnesses) listed(page []*mvccpb.KeyValue) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var newest *mvccpb.KeyValue
	for _, kv := range page {
		if kv.ModRevision > max(ws.first.rev, newest.GetModRevision()) {
			newest = kv
		}
	}
	if newest != nil { // the key alone is kept, not the page
		ws.first = witness{key: string(newest.Key), rev: newest.ModRevision}
	}
}

// changed takes note of events of the watch.
func (ws *witnesses) changed(events []*mvccpb.Event) {
	if len(events) == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, e := range events {
		for i := range ws.known {
			if ws.known[i].key == string(e.Kv.Key) {
				ws.known[i] = witnessOf(e)
			}
		}
		if ws.first.key == string(e.Kv.Key) {
			ws.first = witnessOf(e)
		}
	}
	ws.last = witnessOf(events[len(events)-1])
	if ws.first.key == "" {
		ws.first = witnessOf(events[0])
	}
}

func witnessOf(e *mvccpb.Event) witness {
	return witness{string(e.Kv.Key), e.Kv.ModRevision, e.Type == mvccpb.Event_DELETE}
}

// call returns the witnesses, with those of the changes since the last call.
func (ws *witnesses) call() []witness {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range []witness{ws.first, ws.last} {
		if w.key != "" && !slices.ContainsFunc(ws.known, func(k witness) bool { return k.key == w.key }) {
			ws.known = append(ws.known, w)
		}
	}
	ws.first, ws.last = witness{}, witness{}
	ws.known = ws.known[max(0, len(ws.known)-mostWitnesses):]
	return slices.Clone(ws.known)
}

// still reports whether what is known of a witness has not changed.
func (ws *witnesses) still(w witness) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Contains(ws.known, w)
}

// compare compares the witnesses with the store. A difference may be a change that the watch has not delivered yet; one
// that it does not deliver within the timeout is an error, and so is a key that is older in the store than it was.
func (w *watch) compare(ctx context.Context) error {
	for _, known := range w.witnesses.call() {
		now, err := w.revisionOf(ctx, known.key)
		if err != nil {
			return err
		}
		switch {
		case now == known.rev, now == 0 && known.gone:
			continue
		case now == 0 || now > known.rev:
			backoff.Sleep(ctx, w.timeout)
		}
		if w.witnesses.still(known) {
			return fmt.Errorf("%w: the last change of %.200s was at revision %d, and is at %d (0: the key is missing) now", ErrWentBack, known.key, known.rev, now)
		}
	}
	return nil
}

// revisionOf returns the revision at which a key was written; 0: there is none.
func (w *watch) revisionOf(ctx context.Context, key string) (int64, error) {
	ctx, end := w.client.line.bounded(ctx, w.timeout)
	defer end()
	answer, err := w.client.Get(ctx, key, clientv3.WithKeysOnly())
	if err != nil {
		return 0, because(ctx, err)
	}
	if len(answer.Kvs) == 0 {
		return 0, nil
	}
	return answer.Kvs[0].GetModRevision(), nil
}
