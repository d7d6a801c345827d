package value

import (
	"hash/maphash"
	"slices"
	"sync/atomic"
)

// Shared lets values with equal dependencies have them in common: thousands of routes depend on one
// interface. It remembers some of the newest that came at least twice. Any goroutine may use it.
type Shared struct {
	seed   maphash.Seed
	recent [1024]place // by the hash of the last key
}

// A place remembers dependencies with one hash.
type place struct {
	hash atomic.Uint64 // of the newest last key
	deps atomic.Pointer[[]Dep]
}

// NewShared returns a Shared that remembers nothing yet.
func NewShared() *Shared { return &Shared{seed: maphash.MakeSeed()} }

// Of returns dependencies that are equal to deps, and perhaps had before.
func (s *Shared) Of(deps []Dep) []Dep {
	if len(deps) == 0 || slices.ContainsFunc(deps, func(d Dep) bool { return d.Any != nil }) {
		return deps
	}
	hash := maphash.String(s.seed, deps[len(deps)-1].Key)
	at := &s.recent[hash%uint64(len(s.recent))]
	if had := at.deps.Load(); had != nil && slices.Equal(*had, deps) {
		return *had
	}
	if at.hash.Swap(hash) == hash {
		kept := deps // so that only this path allocates: most values of some kinds have dependencies of their own
		at.deps.Store(&kept)
	}
	return deps
}
