package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/keyplane/keyplane/connectors/redis/internal/info"
	"github.com/keyplane/keyplane/kvdbsync"
)

// ErrEvicted says that a server has evicted keys because its memory is full. No client
// deleted them.
var ErrEvicted = errors.New("redis evicted keys")

// wantNoEviction is the advice to the operator.
const wantNoEviction = "set maxmemory-policy noeviction, or raise maxmemory"

// How the agent tells an eviction from a deletion
//
// With tracking both look alike: the server names the key, and the key is gone. But the
// server counts its evictions, and it counts an eviction before it names the key. So the
// agent reads the count whenever keys are gone. If the count has grown since the last
// reading, all keys that are gone now may have been evicted. So may the keys that the
// server has named but the agent has not read yet: these are suspects. A suspect that is
// gone is treated as evicted. The rule never takes an eviction for a deletion. It may take
// a deletion for an eviction, if the server has evicted another key since the last
// reading.
//
// Keyspace notifications name evicted keys explicitly. These keys are suspects too.
//
// Between two watches nobody names the keys. So the watches share the count up to which all
// evicted keys have been named, read and emitted. If the next watch finds a larger count, its
// listing may lack evicted keys, and it says so: Batch.LostKeys. Only a complete listing that
// the receiver took, and a probe of its watch, raise the shared count.

// A memory records the memory policy and evictions of a Connector's servers. Watches share
// it, so that an unchanged state is logged once.
type memory struct {
	mu      sync.Mutex
	policy  map[string]string // by address; empty: the server does not evict
	evicted map[string]int64  // number of evicted keys that watches have emitted
}

// newMemory returns a memory of servers that knows none.
func newMemory() *memory { return &memory{policy: map[string]string{}, evicted: map[string]int64{}} }

// limited records a policy; empty: the server does not evict. news: the policy changed.
func (m *memory) limited(addr, policy string) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	news = m.policy[addr] != policy
	m.policy[addr] = policy
	return news
}

// mayEvict reports whether some server may evict keys, as far as is known.
func (m *memory) mayEvict() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, policy := range m.policy {
		if policy != "" {
			return true
		}
	}
	return false
}

// settled records that all keys that a server had evicted at this count have been emitted.
func (m *memory) settled(addr string, evicted int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evicted[addr] = evicted
}

// missed returns the growth since the count that was settled last; 0 for an unknown server. A lower count is that of a
// server that was restarted, and has evicted so many since.
func (m *memory) missed(addr string, evicted int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.evicted[addr]
	if !known {
		return 0
	}
	if evicted < before {
		return evicted
	}
	return evicted - before
}

// checkMemory warns about a server that may evict keys when its memory is full. It records
// how many keys the server has evicted since the previous watch.
func (n *node) checkMemory(ctx context.Context) error {
	about, err := n.info(ctx, "memory")
	if err != nil {
		return err
	}
	policy := info.Field(about, "maxmemory_policy")
	if limit := info.Field(about, "maxmemory"); limit == "" || limit == "0" || policy == "noeviction" {
		policy = ""
	}
	if n.memory.limited(n.addr, policy) && policy != "" {
		n.log.Warn("redis may evict keys; "+wantNoEviction, "policy", policy)
	}
	n.evicted, err = n.evictions(ctx)
	if err == nil && n.evicted != unknownCount {
		n.missed = n.memory.missed(n.addr, n.evicted)
	}
	return err
}

// An eviction is the state of a watch about evicted keys.
type eviction struct {
	count int64               // evictions on the servers since the previous watch; of suspects, if unknown
	gone  map[string]struct{} // keys under the prefix that are gone and have not come back
	last  string              // the newest of gone
}

// doubtEvicted marks the keys in events that may have been evicted. It returns the
// problems of a Batch: nil if nothing has changed.
func (w *watch) doubtEvicted(ctx context.Context, events []kvdbsync.Event) (problems []error, err error) {
	var grown int64
	if slices.ContainsFunc(events, isGone) {
		grown, err = w.newEvictions(ctx)
		if err != nil {
			return nil, err
		}
	}
	suspects := w.box.clear(events)
	back, doubted := w.lost.follow(events, suspects, grown > 0)
	if grown == 0 {
		grown = int64(doubted)
	}
	if doubted > 0 {
		w.lost.count += grown
		w.log.Warn("redis evicted keys; their configuration is doubted and stays for now; "+wantNoEviction,
			"evicted", w.lost.count, "gone", len(w.lost.gone), "key", w.lost.last)
	}
	if doubted > 0 || back {
		return w.lost.problems(), nil
	}
	return nil, nil
}

// mostGone is the maximum number of evicted keys remembered by name.
const mostGone = 100_000

// follow records the keys that are gone and may have been evicted, marks them, and removes
// those that came back. all: any key that is gone may have been evicted.
func (l *eviction) follow(events []kvdbsync.Event, suspects map[string]struct{}, all bool) (back bool, doubted int) {
	for i := range events {
		key := events[i].Key
		_, suspect := suspects[key]
		switch {
		case !isGone(events[i]):
			_, was := l.gone[key]
			back = back || was
			delete(l.gone, key)
		case all || suspect:
			events[i].Absent = true
			l.last = key
			if len(l.gone) < mostGone {
				l.gone[key] = struct{}{}
			}
			doubted++
		}
	}
	return back, doubted
}

// problems returns the errors that hold until all keys are back. The result is not nil.
func (l *eviction) problems() []error {
	if len(l.gone) == 0 {
		return []error{}
	}
	return []error{fmt.Errorf("%w: %d evicted, %d of the agent's are gone, such as %s; their configuration is doubted; %s",
		ErrEvicted, l.count, len(l.gone), l.last, wantNoEviction)}
}

// isGone reports whether an event says that the key does not exist.
func isGone(e kvdbsync.Event) bool { return e.Value == nil && e.Err == nil }

// newEvictions returns how many keys the servers have evicted since the last reading. If
// there are any, all keys that the servers have named so far become suspects.
func (w *watch) newEvictions(ctx context.Context) (grown int64, err error) {
	for _, n := range w.nodes {
		now, err := n.evictions(ctx)
		if err != nil {
			return 0, err
		}
		if now != unknownCount && n.evicted != unknownCount && now > n.evicted {
			grown += now - n.evicted
		}
		n.evicted = now
	}
	if grown == 0 {
		return 0, nil
	}
	if err := w.fence(ctx); err != nil {
		return 0, err
	}
	w.box.suspectNamed()
	return grown, nil
}

// counts returns how many keys each server has evicted. After a fence that follows it, all of
// these keys are named.
func (w *watch) counts(ctx context.Context) (counts []int64, err error) {
	for _, n := range w.nodes {
		count, err := n.evictions(ctx)
		if err != nil {
			return nil, err
		}
		counts = append(counts, count)
	}
	return counts, nil
}

// settle records that the keys of these counts have been emitted.
func (w *watch) settle(counts []int64) {
	for i, n := range w.nodes {
		if counts[i] != unknownCount {
			w.memory.settled(n.addr, counts[i])
		}
	}
}

// missedEvictions reports the evictions since the previous watch. The listing that follows
// lacks these keys. They are problems of the source, because the names of the keys are not
// known.
func (w *watch) missedEvictions() []error {
	var errs []error
	for _, n := range w.nodes {
		if n.missed > 0 {
			w.log.Warn("redis evicted keys since it was last asked; the listing may lack some; "+wantNoEviction, "server", n.addr, "evicted", n.missed)
			errs = append(errs, fmt.Errorf("%w: %d on %s since it was last asked; the listing may lack some; %s", ErrEvicted, n.missed, n.addr, wantNoEviction))
		}
	}
	return errs
}

// unknownCount is the count of a server that does not report it.
const unknownCount = -1

// evictions returns how many keys the server has evicted since its start.
func (n *node) evictions(ctx context.Context) (int64, error) {
	about, err := n.info(ctx, "stats")
	if err != nil {
		return unknownCount, err
	}
	count, err := strconv.ParseInt(info.Field(about, "evicted_keys"), 10, 64)
	if err != nil {
		return unknownCount, nil //nolint:nilerr // the server refuses INFO
	}
	return count, nil
}

// info returns an empty text if the server refuses INFO.
func (n *node) info(ctx context.Context, section string) (string, error) {
	about, err := n.data.Info(ctx, section).Result()
	if err != nil && !refused(err) {
		return "", fmt.Errorf("redis %s: %w", n.addr, err)
	}
	return about, nil
}
