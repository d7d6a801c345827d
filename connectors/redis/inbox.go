package redis

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
)

// An inbox is what the servers have said and the watch has not yet looked into:
// which keys changed, and why the watch must end. Goroutines that receive put
// into it and never wait; the watch takes out.
type inbox struct {
	some   wake.Signal   // set when keys came in, or will at the next fence
	lost   chan struct{} // closed when the watch must end
	bounds kvdbsync.Bounds

	mu           sync.Mutex // guards what follows
	named        map[string]struct{}
	cost         int64               // the bytes of named
	maybeEvicted map[string]struct{} // that were evicted, if they are gone
	why          error
}

func newInbox(bounds kvdbsync.Bounds) *inbox {
	return &inbox{bounds: bounds.WithDefaults(), some: wake.New(), lost: make(chan struct{}), named: map[string]struct{}{}, maybeEvicted: map[string]struct{}{}}
}

// add notes keys that changed.
func (b *inbox) add(keys ...string) {
	b.mu.Lock()
	for _, key := range keys {
		if _, known := b.named[key]; !known {
			b.cost += int64(len(key)) + kvdbsync.PairCost
			b.named[key] = struct{}{}
		}
	}
	over := b.cost > b.bounds.Listing
	b.mu.Unlock()
	if over {
		b.fail(b.tooMany())
	}
	if len(keys) > 0 {
		b.some.Set()
	}
}

// tooMany is the error of a server that names more keys than a store may have.
func (b *inbox) tooMany() error {
	return fmt.Errorf("%w: the keys that redis names as changed have more bytes than max-listing-size allows, %d", kvdbsync.ErrTooMuch, b.bounds.Listing)
}

// guarded runs a goroutine of the watch. Its error, or panic, ends the watch.
func (b *inbox) guarded(run func() error) func() {
	return func() {
		if err := guard.Run(run); err != nil {
			b.fail(err)
		}
	}
}

// suspect notes a key that a server says it has evicted.
func (b *inbox) suspect(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.maybeEvicted[key] = struct{}{}
}

// suspectNamed notes that all keys that were named may have been evicted.
func (b *inbox) suspectNamed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.Copy(b.maybeEvicted, b.named)
}

// clear returns the suspects among events, which have been read, and forgets them. Those
// that have been named again meanwhile stay suspects.
func (b *inbox) clear(events []kvdbsync.Event) map[string]struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := map[string]struct{}{}
	for _, e := range events {
		if _, ok := b.maybeEvicted[e.Key]; !ok {
			continue
		}
		found[e.Key] = struct{}{}
		if _, again := b.named[e.Key]; !again {
			delete(b.maybeEvicted, e.Key)
		}
	}
	return found
}

// fail ends the watch; the first reason counts.
func (b *inbox) fail(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why == nil {
		b.why = why
		close(b.lost)
	}
}

// failure is why the watch must end; nil: it need not.
func (b *inbox) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

// take empties the inbox of keys. They are sorted.
func (b *inbox) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := slices.Sorted(maps.Keys(b.named))
	clear(b.named)
	b.cost = 0
	return keys
}

// overlaps tells whether some of keys, which are sorted, have been named again,
// and whether others have.
func (b *inbox) overlaps(keys []string) (some, others bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.named {
		if _, found := slices.BinarySearch(keys, name); found {
			some = true
		} else {
			others = true
		}
	}
	return some, others
}
