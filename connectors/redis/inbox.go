package redis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
)

// An inbox holds the news of the servers that the watch has not processed yet: the changed
// keys, and the reason to end the watch. Receiving goroutines add to it and never block;
// the watch takes from it.
type inbox struct {
	some wake.Signal   // set when keys were added, or will be at the next fence
	lost chan struct{} // closed when the watch must end
	// Other keys are none of the watch's. A server that follows the protocol names none.
	prefix string
	// Limits cost by Listing: a server that names keys without end must not fill the memory.
	bounds kvdbsync.Bounds

	mu sync.Mutex // guards the fields below
	// Keys that have changed since take. A key that changes often is named once.
	named        map[string]struct{}
	cost         int64               // bytes of named
	maybeEvicted map[string]struct{} // evicted keys, if they are gone
	// The first reason to end the watch. It is set before lost is closed, and never changes.
	why error
}

// newInbox returns an empty inbox for one watch of the keys with a prefix.
func newInbox(prefix string, bounds kvdbsync.Bounds) *inbox {
	return &inbox{prefix: prefix, bounds: bounds.WithDefaults(), some: wake.New(), lost: make(chan struct{}), named: map[string]struct{}{}, maybeEvicted: map[string]struct{}{}}
}

// add records keys that changed. Exceeding the bounds ends the watch.
func (b *inbox) add(keys ...string) {
	b.mu.Lock()
	for _, key := range keys {
		if _, known := b.named[key]; !known && strings.HasPrefix(key, b.prefix) {
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

// tooMany is the error for a server that names more keys than a store may have.
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

// suspect records a key that a server reports as evicted.
func (b *inbox) suspect(key string) {
	if !strings.HasPrefix(key, b.prefix) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.maybeEvicted[key] = struct{}{}
}

// suspectNamed records that all named keys may have been evicted. The caller has sent a fence
// before, so the keys of all evictions counted so far are named.
func (b *inbox) suspectNamed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.Copy(b.maybeEvicted, b.named)
}

// clear returns the suspects among events, which have been read, and forgets them. Keys
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

// fail ends the watch; the first reason wins.
func (b *inbox) fail(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why == nil {
		b.why = why
		close(b.lost)
	}
}

// failure returns the reason to end the watch; nil: there is none.
func (b *inbox) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

// take removes all keys from the inbox and returns them, sorted.
func (b *inbox) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := slices.Sorted(maps.Keys(b.named))
	clear(b.named)
	b.cost = 0
	return keys
}

// overlaps reports whether some of keys, which are sorted, have been named again, and
// whether other keys have been named.
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
