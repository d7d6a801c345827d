package iptables

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/wake"
)

// A watcher records the chains of the agent, and follows the changes of rules in their
// namespaces. Verbs and Retrieve record; the goroutine of run checks.
//
// A change of a recorded chain, also one by the agent itself, only makes the namespace due. Some
// milliseconds later it is read, which seals what was written and detects what others changed.
// iptables-legacy reports no changes. There only the next resync finds them.
type watcher struct {
	h     *handler
	wake  wake.Signal       // set when unread or due is not empty
	notes chan notification // from the readers of the subscriptions

	mu     sync.Mutex // guards the fields below
	spaces map[kernel.ID]*watched
	unread []*watched // subscriptions without a reader yet
	due    map[kernel.ID]bool
	clock  uint64 // counts the calls of note
}

// watched is a namespace with chains of the agent. It keeps the namespace open.
type watched struct {
	space  *netns.Space
	events kernel.RuleEvents // nil: the kernel has no nftables
	leave  func()            // ends the announcement of the installation; nil: it has ended
	chains map[string]record // by key
	// awaited are chains of others that are in the way of values.
	awaited map[chainID]bool
}

// close ends the reader of the namespace.
func (w *watched) close() {
	if w.events != nil {
		w.events.Close()
	}
	w.withdraw()
	w.space.Close()
}

// withdraw ends the announcement of the installation.
func (w *watched) withdraw() {
	if w.leave != nil {
		w.leave()
		w.leave = nil
	}
}

// notification is what a subscription has received.
type notification struct {
	from   *watched
	events []kernel.RuleEvent
	err    error
}

// The delay between a change and its check. While others change rules all the time, a check
// may take at most about a tenth of the time.
const (
	shortestDelay = 2 * drift.Debounce
	idleness      = 10
)

// newWatcher returns a watcher that records; run checks.
func newWatcher(h *handler) *watcher {
	return &watcher{h: h, wake: wake.New(), notes: make(chan notification), spaces: map[kernel.ID]*watched{}, due: map[kernel.ID]bool{}}
}

// written records a chain that a verb has written, and wants it sealed.
func (w *watcher) written(space *netns.Space, key string, t table, c content) {
	w.note(space, key, record{chainID: chainID{t, c.chain}, declared: c.declared, in: c.in, policy: c.policy, unsealed: true, was: c.was}, true)
}

// retrieved records a chain that Retrieve has found.
func (w *watcher) retrieved(space *netns.Space, key string, m mine) {
	r := record{chainID: chainID{m.table, m.chain}, declared: m.declared, in: m.in, policy: m.policy, was: m.was}
	r.unsealed = w.justWritten(space.ID, key, m)
	w.note(space, key, r, m.kernel == "")
}

// restored records a chain that a verb has brought back to what it was.
func (w *watcher) restored(space *netns.Space, key string, m mine) {
	w.note(space, key, record{
		chainID: chainID{m.table, m.chain}, declared: m.declared, in: m.in, policy: m.policy, unsealed: m.kernel == "", was: m.was,
	}, true)
}

// unwritten forgets a chain that a verb has written and taken away again.
func (w *watcher) unwritten(ns kernel.ID, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.spaces[ns]; one != nil {
		delete(one.chains, key)
		w.dropUnused(ns, one)
	}
}

// justWritten reports whether a chain that has no seal is what a verb has written.
func (w *watcher) justWritten(ns kernel.ID, key string, m mine) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.spaces[ns]
	if one == nil || m.kernel != "" {
		return false
	}
	r := one.chains[key]
	return r.unsealed && r.chainID == chainID{m.table, m.chain} && r.declared == m.declared
}

// sealed notes that chains were sealed.
func (w *watcher) sealed(ns kernel.ID, chains map[table][]mine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.spaces[ns]
	if one == nil {
		return
	}
	for key, r := range one.chains {
		if slices.ContainsFunc(chains[r.table], func(m mine) bool { return m.chain == r.chain && m.declared == r.declared }) {
			r.unsealed = false
			one.chains[key] = r
		}
	}
}

// await has Again called when a chain of another owner changes or goes.
func (w *watcher) await(space *netns.Space, at chainID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.spaces[space.ID]
	if one == nil {
		one = w.follow(space)
	}
	if one != nil {
		one.awaited[at] = true
	}
}

// note records a chain. A check follows if it is due, or if the namespace was not followed yet:
// then a change may have been missed.
func (w *watcher) note(space *netns.Space, key string, r record, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.spaces[space.ID]
	if one == nil {
		if one = w.follow(space); one == nil {
			return
		}
		due = true
	}
	if one.leave == nil {
		one.leave = w.h.Watch.Announce(one.space)
	}
	w.clock++
	r.seen = w.clock
	one.chains[key] = r
	if due {
		w.due[space.ID] = true
		w.wake.Set()
	}
}

// follow opens a subscription. It returns nil if the namespace has gone. The mutex is held. A
// subscription that fails is only logged: the chain itself works.
func (w *watcher) follow(space *netns.Space) *watched {
	kept, ok := w.h.Spaces.ByID(space.ID)
	if !ok {
		return nil
	}
	events, err := kept.SubscribeRules()
	if err != nil {
		w.h.Log.Warn("cannot follow changes of rules; only a resync will notice them", "err", err)
		events = nil
	}
	one := &watched{space: kept, events: events, leave: w.h.Watch.Announce(kept), chains: map[string]record{}, awaited: map[chainID]bool{}}
	w.spaces[space.ID] = one
	if events != nil {
		w.unread = append(w.unread, one)
		w.wake.Set()
	}
	return one
}

// forget notes that the agent removes a chain. It goes on to notice if somebody restores the chain, as long as
// somebody tells when the namespace goes: an open one would outlive its deletion.
func (w *watcher) forget(ns kernel.ID, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.spaces[ns]
	if one == nil {
		return
	}
	r, recorded := one.chains[key]
	delete(one.chains, key)
	if recorded {
		one.chains[key] = record{chainID: r.chainID, removed: true}
	}
	w.dropUnused(ns, one)
}

// dropUnused ends the announcement in a namespace in which nothing is, and also the watch, unless somebody may
// restore what was there. The mutex is held.
func (w *watcher) dropUnused(ns kernel.ID, one *watched) {
	for _, r := range one.chains {
		if !r.removed {
			return
		}
	}
	switch {
	case len(one.awaited) > 0:
	case len(one.chains) > 0 && one.space.Kept():
		one.withdraw()
	default:
		w.drop(ns)
	}
}

// now returns the time for unseen, in a count of its own.
func (w *watcher) now() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

// unseen forgets the chains that were neither written nor retrieved since the given time, except
// those that keep accepts.
func (w *watcher) unseen(since uint64, keep func(ns kernel.ID, key string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ns, one := range w.spaces {
		maps.DeleteFunc(one.chains, func(key string, r record) bool { return r.seen <= since && !r.removed && !keep(ns, key) })
		w.dropUnused(ns, one)
	}
}

// drop ends the watch of a namespace. The mutex is held.
func (w *watcher) drop(ns kernel.ID) {
	if one := w.spaces[ns]; one != nil {
		delete(w.spaces, ns)
		delete(w.due, ns)
		one.close()
	}
}

// was returns the policy before that of a recorded chain, or "".
func (w *watcher) was(ns kernel.ID, key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.spaces[ns]; one != nil {
		return one.chains[key].was
	}
	return ""
}

// recorded returns a copy of the chains of a namespace.
func (w *watcher) recorded(ns kernel.ID) map[string]record {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.spaces[ns]; one != nil {
		return maps.Clone(one.chains)
	}
	return nil
}

// NamespacesGone reports namespaces that have lost their names. Their chains count as lost.
func (c *Chains) NamespacesGone(ids []kernel.ID) {
	w := c.h.watcher
	var lost []string
	w.mu.Lock()
	for _, ns := range ids {
		if one := w.spaces[ns]; one != nil {
			for key, r := range one.chains {
				if !r.removed {
					lost = append(lost, key)
				}
			}
			w.drop(ns)
		}
	}
	w.mu.Unlock()
	if len(lost) > 0 {
		slices.Sort(lost)
		c.h.Lost(lost)
	}
}

// Run seals chains and notices changes by others until ctx ends.
func (c *Chains) Run(ctx context.Context) error {
	w := c.h.watcher
	readers, ctx := errgroup.WithContext(ctx)
	defer func() { _ = readers.Wait() }()
	defer w.closeAll()
	timer := time.NewTimer(0)
	defer timer.Stop()
	timer.Stop()
	var waits bool
	var earliest time.Time // of the next check
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake.C():
			w.startReaders(ctx, readers)
		case n := <-w.notes:
			w.receive(n)
		case <-timer.C:
			waits = false
			began := time.Now()
			w.check(ctx)
			earliest = time.Now().Add(idleness * time.Since(began))
		}
		if !waits && w.anyDue() {
			waits = true
			timer.Reset(max(shortestDelay, time.Until(earliest)))
		}
	}
}

// closeAll ends all subscriptions, and with them the readers.
func (w *watcher) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ns := range w.spaces {
		w.drop(ns)
	}
}

// startReaders starts a reader for each new subscription.
func (w *watcher) startReaders(ctx context.Context, readers *errgroup.Group) {
	w.mu.Lock()
	unread := w.unread
	w.unread = nil
	w.mu.Unlock()
	for _, one := range unread {
		readers.Go(func() error { w.forward(ctx, one); return nil })
	}
}

// forward passes the notifications of one subscription on, until it ends.
func (w *watcher) forward(ctx context.Context, one *watched) {
	for {
		events, err := one.events.Next()
		select {
		case w.notes <- notification{one, events, err}:
		case <-ctx.Done():
			return
		}
		if err != nil && !errors.Is(err, kernel.ErrLost) {
			return
		}
	}
}

// receive makes a namespace due if a recorded chain, or one that jumps to it, has changed. After
// lost notifications any may have.
func (w *watcher) receive(n notification) {
	if w.take(n) {
		w.h.Again()
	}
}

// take is receive, and reports whether a chain has changed that a value waits for.
func (w *watcher) take(n notification) (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ns := n.from.space.ID
	if w.spaces[ns] != n.from {
		return false // closed meanwhile
	}
	if n.err != nil || slices.ContainsFunc(n.events, n.from.concerns) {
		w.due[ns] = true
	}
	waiting := len(n.from.awaited)
	maps.DeleteFunc(n.from.awaited, func(at chainID, _ bool) bool {
		return n.err != nil || slices.ContainsFunc(n.events, at.changes)
	})
	again = len(n.from.awaited) < waiting
	w.dropUnused(ns, n.from)
	return again
}

// changes reports whether an event is about the chain or its whole table.
func (at chainID) changes(e kernel.RuleEvent) bool {
	return at.table == (table{e.IPv6, strings.TrimPrefix(e.Table, nftPrefix)}) && (e.Chain == "" || e.Chain == at.chain)
}

// concerns reports whether an event is about a recorded chain, also one that may have been renamed, or about a built-in
// chain of its table.
func (w *watched) concerns(e kernel.RuleEvent) bool {
	for _, at := range w.chains {
		beside := (isBuiltIn(e.Chain) || e.Used) && at.table == (table{e.IPv6, strings.TrimPrefix(e.Table, nftPrefix)})
		if beside || at.changes(e) {
			return true
		}
	}
	return false
}

// anyDue reports whether a namespace waits for a check.
func (w *watcher) anyDue() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.due) > 0
}

// check checks the namespaces that are due. The mutex is not held meanwhile, since reading
// rules starts programs.
func (w *watcher) check(ctx context.Context) {
	w.mu.Lock()
	due := slices.SortedFunc(maps.Keys(w.due), func(a, b kernel.ID) int { return cmp.Compare(a.Ino, b.Ino) })
	clear(w.due)
	w.mu.Unlock()
	for _, ns := range due {
		changed, err := w.h.checkAll(ctx, ns)
		if err != nil && ctx.Err() == nil {
			w.h.Log.Warn("cannot check chains of rules; changes by others stay until the next resync", "err", err)
		}
		if changed {
			w.h.refresh()
		}
	}
}
