package orchestrator

import (
	"slices"
	"time"
)

// A confirmation says that a listing of a source is merged. It holds when the transactions that
// have begun until then have ended: Health.Confirmed then names the beginning of the listing.
type confirmation struct {
	source  *source
	listing time.Time
	after   uint64 // the number of the last of these transactions
}

// transactions are the numbers of those that run: later ones may end earlier. The goroutine of
// Run owns it.
type transactions struct {
	last    uint64 // the number of the newest one that has begun
	running []uint64
	waiting []confirmation // oldest first
}

// begin numbers a transaction.
func (t *transactions) begin() (number uint64) {
	t.last++
	t.running = append(t.running, t.last)
	return t.last
}

// end notes that a transaction has ended.
func (t *transactions) end(number uint64) {
	t.running = slices.DeleteFunc(t.running, func(n uint64) bool { return n == number })
	if len(t.waiting) > 0 {
		t.confirm()
	}
}

// add notes that a listing of a source is merged. Before the first transaction, that one will have
// it.
func (t *transactions) add(l *source, listing time.Time) {
	t.waiting = append(t.waiting, confirmation{l, listing, max(t.last, 1)})
	t.confirm()
}

// confirm publishes the confirmations that hold.
func (t *transactions) confirm() {
	t.waiting = slices.DeleteFunc(t.waiting, func(c confirmation) bool {
		if t.last < c.after || slices.ContainsFunc(t.running, func(n uint64) bool { return n <= c.after }) {
			return false
		}
		c.source.published.confirmed.Store(&c.listing)
		return true
	})
}

// Relist asks each source to list its store again. Health.Confirmed tells when the listing is in
// effect. Any goroutine may call it.
func (o *Orchestrator) Relist() {
	for _, l := range *o.shown.Load() {
		if source, ok := l.Feed.(relister); ok {
			source.Relist()
		}
	}
}

// A relister is a Feed that can list its store again; *kvdbsync.Source is one.
type relister interface{ Relist() }
