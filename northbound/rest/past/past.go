// Package past keeps the newest transactions in a folder, so that an agent can show those before its last start: which keys
// changed, and with which outcome. It saves no values, which may be secrets.
//
//	log := past.New(past.Options{Store: store, History: scheduler})
//	go log.Run(ctx)
//	...
//	log.Save() // when the scheduler has ended
//	all := log.Earlier()
//
// The Store belongs to the caller, who also runs it. A transaction costs nothing here when it ends: Run saves all new ones of
// the scheduler's history together, every Period, and the caller those that are left at the end. So a kill loses the last ones.
// Transactions without an operation, and retries that fail as before, are not kept: a value that fails for a week would
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
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/records"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// Period is the time after which new transactions are saved: a kill loses those of so long a time.
const Period = 10 * time.Second

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

// A History has the transactions of this run. *scheduler.Scheduler is one.
type History interface {
	HistorySince(n uint64) (records []*scheduler.Record, all uint64)
}

// Options configure a Log. Store and History are required.
type Options struct {
	Store   Store
	History History
	Log     *slog.Logger // Defaults to discarding
}

// A Log saves transactions.
type Log struct {
	Options

	mu      sync.Mutex // guards the fields below
	saved   uint64     // how many transactions of the History were looked at
	keys    []string   // in the Store, oldest first
	earlier int        // the number of keys, the first ones, that were there at the start
}

// New returns a Log. It reads the Store.
func New(o Options) *Log {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	l := &Log{Options: o}
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

// Run saves new transactions every Period until ctx ends.
func (l *Log) Run(ctx context.Context) error {
	tick := time.NewTicker(Period)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.Save()
		case <-ctx.Done():
			return nil
		}
	}
}

// Save saves the transactions that have ended since the last call, and removes the oldest ones that are too many.
func (l *Log) Save() {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, n := l.History.HistorySince(l.saved)
	l.saved = n
	changes := map[string][]byte{}
	for _, r := range all {
		if !tells(r) {
			continue
		}
		text, err := json.Marshal(recordOf(r))
		if err != nil {
			l.Log.Warn("a transaction cannot be saved for the next start", "seq", r.Seq, "err", err)
			continue
		}
		// The time of the start orders the transactions of all runs. Numbers begin anew with each.
		key := fmt.Sprintf("%020d-%010d", r.Start.UnixNano(), r.Seq)
		changes[key], l.keys = text, append(l.keys, key)
		if old := l.keys[0]; len(l.keys) > most {
			changes[old] = nil
			l.keys, l.earlier = l.keys[1:], max(0, l.earlier-1)
		}
	}
	if len(changes) == 0 {
		return
	}
	if err := l.Store.Save(maps.All(changes)); err != nil {
		l.Log.Warn("transactions are not saved for the next start", "err", err)
	}
}

// tells reports whether a transaction is kept.
func tells(r *scheduler.Record) bool {
	if len(r.RefreshErrors) > 0 {
		return true
	}
	if r.Type != scheduler.RetryFailed {
		return r.Executed.Len() > 0
	}
	return r.Executed.Any(func(o scheduler.Operation) bool {
		return o.NewErr == nil || o.OldErr == nil || o.NewErr.Error() != o.OldErr.Error()
	})
}

// recordOf returns a transaction without values, with the first of its operations.
func recordOf(r *scheduler.Record) wire.Record {
	out := records.Of(r).Head
	out.Earlier = true
	first := r.Executed.Part(0, mostOperations)
	out.Cut = r.Executed.Len() - first.Len()
	var bare scheduler.Operations
	for _, o := range first.All() {
		o.Old, o.New = nil, nil
		bare = bare.With(o)
	}
	out.Executed = slices.Collect(records.Operations(bare))
	for _, err := range r.RefreshErrors[:min(len(r.RefreshErrors), mostOperations)] {
		out.NotReadBack = append(out.NotReadBack, err.Error())
	}
	return out
}
