package value

import (
	"hash/maphash"
	"slices"
	"sync/atomic"
)

// Shared lets values with equal dependencies have them in common: thousands of routes depend on one
// interface. It remembers some of the newest. Any goroutine may use it.
type Shared struct {
	seed   maphash.Seed
	recent [1024]atomic.Pointer[[]Dep] // by the hash of the last key
}

// NewShared returns a Shared that remembers nothing yet.
func NewShared() *Shared { return &Shared{seed: maphash.MakeSeed()} }

// Of returns dependencies that are equal to deps, and perhaps had before.
func (s *Shared) Of(deps []Dep) []Dep {
	if len(deps) == 0 || slices.ContainsFunc(deps, func(d Dep) bool { return d.Any != nil }) {
		return deps
	}
	last := deps[len(deps)-1].Key
	at := &s.recent[maphash.String(s.seed, last)%uint64(len(s.recent))]
	if had := at.Load(); had != nil && slices.Equal(*had, deps) {
		return *had
	}
	kept := deps // so that only this path allocates
	at.Store(&kept)
	return deps
}
