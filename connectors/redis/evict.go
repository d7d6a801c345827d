package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/kvdbsync"
)

// ErrEvicted says that a server has dropped keys because its memory is full. Nobody
// has deleted them.
var ErrEvicted = errors.New("redis evicted keys")

// wantNoEviction is what people should do about it.
const wantNoEviction = "set maxmemory-policy noeviction, or raise maxmemory"

// How an eviction is told from a deletion
//
// With tracking both look alike: the server names the key, and it is gone. But the
// server counts what it evicts, and it counts an eviction before it names the key. So
// whenever keys are gone the count is asked for. If it has grown since the last look,
// all keys that are gone now may have been evicted, and so may those that the server
// has named by then and that have not been read yet: these are suspects. A suspect
// that is gone was evicted, as far as anybody knows. The rule never takes an eviction
// for a deletion. It may take a deletion for an eviction, if the server has evicted
// another key since the last look.
//
// Keyspace notifications name evicted keys as such. These are suspects.

// A memory is what a Connector has seen of the memory of its servers. Watches share it,
// so that what stays as it is is said once.
type memory struct {
	mu      sync.Mutex
	policy  map[string]string // of a server that may evict, by its address
	evicted map[string]int64  // how many keys it had evicted when last asked
}

func newMemory() *memory { return &memory{policy: map[string]string{}, evicted: map[string]int64{}} }

// limited notes a policy; empty: the server does not evict. It tells whether that is news.
func (m *memory) limited(addr, policy string) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	news = m.policy[addr] != policy
	m.policy[addr] = policy
	return news
}

// counted notes how many keys a server has evicted, and returns how many of them are
// new since it was last asked. One that was never asked has no new ones, and nor has one
// that has counted less: it was started again.
func (m *memory) counted(addr string, evicted int64) (grown int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.evicted[addr]
	m.evicted[addr] = evicted
	if !known {
		return 0
	}
	return max(evicted-before, 0)
}

// checkMemory warns of a server that may drop keys when its memory is full, and notes how
// many it has dropped since the watch before.
func (n *node) checkMemory(ctx context.Context) error {
	about, err := n.info(ctx, "memory")
	if err != nil {
		return err
	}
	policy := infoField(about, "maxmemory_policy")
	if limit := infoField(about, "maxmemory"); limit == "" || limit == "0" || policy == "noeviction" {
		policy = ""
	}
	if n.memory.limited(n.addr, policy) && policy != "" {
		n.log.Warn("redis may evict keys; "+wantNoEviction, "policy", policy)
	}
	n.evicted, err = n.evictions(ctx)
	if err == nil && n.evicted != unknownCount {
		n.missed = n.memory.counted(n.addr, n.evicted)
	}
	return err
}

// An eviction is what a watch has to say about keys that were evicted.
type eviction struct {
	count int64               // of the servers, since the watch before; of suspects, if they do not tell
	gone  map[string]struct{} // keys under the prefix that went, and have not come back
	last  string              // the newest of them
}

// doubtEvicted marks the keys in events that may have been evicted. It returns the
// problems of a Batch: nil if nothing has changed.
func (w *watch) doubtEvicted(ctx context.Context, events []kvdbsync.Event) (problems []error, err error) {
	var grown int64
	if slices.ContainsFunc(events, isGone) {
		if grown, err = w.newEvictions(ctx); err != nil {
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
		w.log.Warn("redis evicted keys; what they configure is doubted and stays for now; "+wantNoEviction,
			"evicted", w.lost.count, "gone", len(w.lost.gone), "key", w.lost.last)
	}
	if doubted > 0 || back {
		return w.lost.problems(), nil
	}
	return nil, nil
}

// mostGone is how many evicted keys are remembered by name.
const mostGone = 100_000

// follow notes which keys are gone and may have been evicted, marks these, and drops those
// that came back. all: any that is gone may have been.
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
			if l.last = key; len(l.gone) < mostGone {
				l.gone[key] = struct{}{}
			}
			doubted++
		}
	}
	return back, doubted
}

// problems are what is wrong as long as not all keys are back; not nil.
func (l *eviction) problems() []error {
	if len(l.gone) == 0 {
		return []error{}
	}
	return []error{fmt.Errorf("%w: %d evicted, %d of the agent's are gone, such as %s; what they configure is doubted; %s",
		ErrEvicted, l.count, len(l.gone), l.last, wantNoEviction)}
}

func isGone(e kvdbsync.Event) bool { return e.Value == nil && e.Err == nil }

// newEvictions returns how many keys the servers have evicted since they were last asked.
// If there are any, what the servers have named by now is suspect.
func (w *watch) newEvictions(ctx context.Context) (grown int64, err error) {
	for _, n := range w.nodes {
		now, err := n.evictions(ctx)
		if err != nil {
			return 0, err
		}
		if now != unknownCount && n.evicted != unknownCount && now > n.evicted {
			grown += now - n.evicted
			n.memory.counted(n.addr, now)
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

// missedEvictions says what the servers have evicted since the watch before. The listing
// that follows lacks these keys.
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

// unknownCount is the count of a server that does not tell it.
const unknownCount = -1

// evictions is how many keys the server has evicted since it started.
func (n *node) evictions(ctx context.Context) (int64, error) {
	about, err := n.info(ctx, "stats")
	if err != nil {
		return unknownCount, err
	}
	count, err := strconv.ParseInt(infoField(about, "evicted_keys"), 10, 64)
	if err != nil {
		return unknownCount, nil //nolint:nilerr // the server does not let us ask
	}
	return count, nil
}

// info returns nothing where the server does not let us ask.
func (n *node) info(ctx context.Context, section string) (string, error) {
	about, err := n.data.Info(ctx, section).Result()
	if err != nil && !refused(err) {
		return "", fmt.Errorf("redis %s: %w", n.addr, err)
	}
	return about, nil
}

// infoField finds "name:value" on a line of its own.
func infoField(about, name string) string {
	for line := range strings.Lines(about) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
