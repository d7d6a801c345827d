package kvdbsync

import (
	"sync"
	"time"
)

// A State is the relation of a Source to its store.
type State int

const (
	Connecting State = iota // never synced, and no answer yet
	Syncing                 // a listing is under way
	Synced                  // the mirror follows the store
	Lost                    // was synced, and is not
	Withheld                // the store answers, and its content may not be taken; see Options.Withhold
)

// String is the word that logs, REST and agentctl show.
func (s State) String() string {
	switch s {
	case Connecting:
		return "connecting"
	case Syncing:
		return "syncing"
	case Synced:
		return "synced"
	case Lost:
		return "lost"
	case Withheld:
		return "withheld"
	}
	return "unknown"
}

// Health is the state of a Source at one moment. It is a copy and cheap to get.
type Health struct {
	Source string
	State  State
	// Since is the time at which the store became synced; if it is not, at which it was lost.
	Since time.Time
	// Rev is the store's revision; 0 where it has none.
	Rev int64
	// Keys is the number of keys in the store.
	Keys int
	// Listed is the number of events of the listing under way, which are its keys so far. It is
	// 0 unless State is Syncing.
	Listed int
	// Problems is the number of errors in the store's content that belong to no key.
	Problems int
	// Failures is the number of attempts that failed since the store was synced.
	Failures int
	// Err is the reason why the store is not synced, or is withheld; nil: neither.
	Err error

	// LastErr is the reason for the last end of a watch, and LastErrAt its time. They stay
	// after the store is synced again. nil means that no watch has ended yet.
	LastErr   error
	LastErrAt time.Time

	// Waiting is the number of keys with changes that the consumer has not taken. Lag is
	// the age of the oldest such change. Waited is the value of Lag at the last Take.
	Waiting     int
	Lag, Waited time.Duration

	// Batches and Events count the yields of the connector since the Source was made.
	Batches, Events uint64
	// Listings counts the complete listings, those of anti-entropy included.
	Listings uint64
	// Gaps counts how often the source fell out of sync.
	Gaps uint64
}

// health keeps a Health, except the waiting changes. The goroutines of the source write
// it.
type health struct {
	mu  sync.Mutex // guards now and was
	now Health
	was bool // the source has been synced before
}

// begin sets the state of a source that has not connected yet.
func (h *health) begin(source string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = Health{Source: source, Since: time.Now()}
}

// get returns a copy, which the caller may keep.
func (h *health) get() Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// update sets the counters after a batch.
func (h *health) update(rev int64, keys, problems int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Rev, h.now.Keys, h.now.Problems = rev, keys, problems
}

// yielded counts a batch.
func (h *health) yielded(b Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Batches++
	h.now.Events += uint64(len(b.Events))
	if b.Synced {
		h.now.Listings++
	}
	if h.now.State == Syncing {
		h.now.Listed += len(b.Events)
	}
}

// listing notes that the store lists its keys.
func (h *health) listing() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.State = Syncing
}

// synced notes that the listing is complete, which ends all failures.
func (h *health) synced() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.was = true
	h.now.State, h.now.Since, h.now.Failures, h.now.Err = Synced, time.Now(), 0, nil
	h.now.Listed = 0
}

// record records the end of a watch. It returns true for the first failure, and for an
// error that differs from the one before.
func (h *health) record(err error) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.LastErr, h.now.LastErrAt = err, time.Now()
	h.now.Listed = 0
	if h.now.State == Synced {
		h.now.Since = h.now.LastErrAt
		h.now.Gaps++
	}
	h.now.State = Connecting
	if h.was {
		h.now.State = Lost
	}
	news = h.now.Err == nil || !sameText(h.now.Err, err)
	h.now.Failures++
	h.now.Err = err
	return news
}
