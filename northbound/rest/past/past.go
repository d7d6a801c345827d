// Package past keeps the newest transactions in a folder, so that an agent can show those before its last start: which keys
// changed, and with which outcome. It saves no values, which may be secrets.
//
//	log := past.New(past.Options{Store: store, Next: txnlog.New(...)})
//	scheduler.Options{TransactionLog: log}
//	...
//	all := log.Earlier()
//
// The Store belongs to the caller, who also runs it. A transaction is saved soon after its end; one that a kill overtakes is
// missing. Transactions without an operation, and retries that fail as before, are not kept: a value that fails for a week would
// displace all others.
package past

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/northbound/rest/internal/records"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	// most is how many transactions are kept, of all runs together.
	most = 200
	// mostOperations is how many operations of a transaction are kept.
	mostOperations = 100
)

// A Store keeps texts by key. *statestore.Store is one.
type Store interface {
	Load() iter.Seq2[string, []byte]
	Save(changes iter.Seq2[string, []byte]) error
}

// Options configure a Log. Store is required.
type Options struct {
	Store Store
	// Next also gets all transactions. Defaults to nobody.
	Next scheduler.TransactionLog
	Log  *slog.Logger // Defaults to discarding
}

// A Log is a scheduler.TransactionLog that saves transactions.
type Log struct {
	Options
	ready wake.Signal

	mu      sync.Mutex // guards the fields below
	waiting []*scheduler.Record
	keys    []string // in the Store, oldest first
	earlier int      // the number of keys, the first ones, that were there at the start
}

// New returns a Log. It reads the Store.
func New(o Options) *Log {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	l := &Log{Options: o, ready: wake.New()}
	for key := range o.Store.Load() {
		l.keys = append(l.keys, key)
	}
	slices.Sort(l.keys)
	l.earlier = len(l.keys)
	return l
}

// Earlier returns the kept transactions of earlier runs, oldest first.
func (l *Log) Earlier() (out []wire.Record) {
	l.mu.Lock()
	keys := slices.Clone(l.keys[:l.earlier])
	l.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	texts := maps.Collect(l.Store.Load())
	for _, key := range keys {
		var r wire.Record
		if err := json.Unmarshal(texts[key], &r); err != nil {
			l.Log.Warn("a saved transaction is unreadable", "key", key, "err", err)
			continue
		}
		out = append(out, r)
	}
	return out
}

// Run implements scheduler.TransactionLog. It also runs Next.
func (l *Log) Run(ctx context.Context) error {
	var next sync.WaitGroup
	defer next.Wait()
	failed := make(chan error, 1)
	if l.Next != nil {
		next.Go(func() { failed <- l.Next.Run(ctx) })
	}
	for {
		select {
		case err := <-failed:
			if err != nil {
				return err
			}
			failed = nil // it has ended with ctx
		case <-l.ready.C():
		case <-ctx.Done():
			l.save()
			if l.Next == nil || failed == nil {
				return nil
			}
			return <-failed
		}
		l.save()
	}
}

// Begin implements scheduler.TransactionLog.
func (l *Log) Begin(r *scheduler.Record) {
	if l.Next != nil {
		l.Next.Begin(r)
	}
}

// End implements scheduler.TransactionLog.
func (l *Log) End(r *scheduler.Record) {
	if l.Next != nil {
		l.Next.End(r)
	}
	if !tells(r) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 2*most { // the older half would be removed again
		l.waiting = slices.Delete(l.waiting, 0, most)
	}
	l.waiting = append(l.waiting, r)
	l.ready.Set()
}

// Flush implements scheduler.TransactionLog.
func (l *Log) Flush(ctx context.Context) error {
	if l.Next == nil {
		return nil
	}
	return l.Next.Flush(ctx)
}

// Loss implements scheduler.TransactionLog. It is that of Next.
func (l *Log) Loss() (transactions, plans uint64) {
	if l.Next == nil {
		return 0, 0
	}
	return l.Next.Loss()
}

// tells reports whether a transaction is kept.
func tells(r *scheduler.Record) bool {
	if len(r.RefreshErrors) > 0 {
		return true
	}
	if r.Type != scheduler.RetryFailed {
		return len(r.Executed) > 0
	}
	return slices.ContainsFunc(r.Executed, func(o scheduler.Operation) bool {
		return o.NewErr == nil || o.OldErr == nil || o.NewErr.Error() != o.OldErr.Error()
	})
}

// save writes the transactions that wait, and removes the oldest ones that are too many.
func (l *Log) save() {
	l.mu.Lock()
	waiting := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	changes := map[string][]byte{}
	var added []string
	for _, r := range waiting {
		text, err := json.Marshal(recordOf(r))
		if err != nil {
			l.Log.Warn("a transaction cannot be saved for the next start", "seq", r.Seq, "err", err)
			continue
		}
		// The time of the start orders the transactions of all runs. Numbers begin anew with each.
		key := fmt.Sprintf("%020d-%010d", r.Start.UnixNano(), r.Seq)
		changes[key], added = text, append(added, key)
	}
	l.mu.Lock()
	l.keys = append(l.keys, added...)
	for old := len(l.keys) - most; old > 0; old-- {
		changes[l.keys[0]] = nil
		l.keys, l.earlier = l.keys[1:], max(0, l.earlier-1)
	}
	l.mu.Unlock()
	if err := l.Store.Save(maps.All(changes)); err != nil {
		l.Log.Warn("transactions are not saved for the next start", "err", err)
	}
}

// recordOf returns a transaction without values.
func recordOf(r *scheduler.Record) wire.Record {
	out := records.Of(r).Head
	out.Earlier = true
	ops := r.Executed
	if out.Cut = len(ops) - mostOperations; out.Cut > 0 {
		ops = ops[:mostOperations]
	}
	out.Cut = max(0, out.Cut)
	bare := slices.Clone(ops)
	for i := range bare {
		bare[i].Old, bare[i].New = nil, nil
	}
	out.Executed = slices.Collect(records.Operations(bare))
	for _, err := range r.RefreshErrors[:min(len(r.RefreshErrors), mostOperations)] {
		out.NotReadBack = append(out.NotReadBack, err.Error())
	}
	return out
}
