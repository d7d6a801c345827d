// Package pulse tells whether the goroutine of an event loop is stuck.
//
// The loop calls Rest before it waits, and Work when it has something to do. An observer on another
// goroutine looks from time to time with a Watch. A loop that waits is alive, however long it waits; so is
// one that has waited since the last look. A loop that has worked from one look to the next
// without a pause is stuck, or has more work than fits between two looks.
//
// A Pulse costs the loop one atomic addition, and needs no clock and no goroutine.
package pulse

import "sync/atomic"

// A Pulse belongs to one event loop. The zero Pulse is that of a loop which waits.
type Pulse struct {
	// beats counts the changes between waiting and working; it is odd while the loop works.
	beats atomic.Uint64
}

// Rest says that the loop is about to wait. The loop's goroutine calls it.
func (p *Pulse) Rest() {
	if p.beats.Load()%2 == 1 {
		p.beats.Add(1)
	}
}

// Work says that the loop has something to do. The loop's goroutine calls it.
func (p *Pulse) Work() {
	if p.beats.Load()%2 == 0 {
		p.beats.Add(1)
	}
}

// A Watch observes one Pulse. It belongs to one goroutine.
type Watch struct {
	pulse *Pulse
	seen  uint64
}

// Watch returns a Watch whose first look finds the loop alive.
func (p *Pulse) Watch() *Watch { return &Watch{pulse: p} }

// Alive reports whether the loop waits, or has waited since the last call.
func (w *Watch) Alive() bool {
	before := w.seen
	w.seen = w.pulse.beats.Load()
	return w.seen%2 == 0 || w.seen != before
}
