package iface

import (
	"sync"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// locks has a lock for each key, so that a verb that waits for the kernel keeps only those waiting that work at the same
// thing. The zero value has none.
type locks[K comparable] struct {
	mu   sync.Mutex // guards held, and their users
	held map[K]*lock
}

// A lock is held by one at a time. It is forgotten when nobody uses it, so the map does not grow with the number of keys
// ever seen.
type lock struct {
	held  chan struct{} // has a token while somebody holds it
	users int           // that hold it or wait for it
}

// hold waits until nobody else works at key, and returns how that ends.
func (l *locks[K]) hold(key K) (release func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[K]*lock{}
	}
	one := l.held[key]
	if one == nil {
		one = &lock{held: make(chan struct{}, 1)}
		l.held[key] = one
	}
	one.users++
	l.mu.Unlock()
	one.held <- struct{}{} // outside of mu, so that others go on
	return func() {
		<-one.held
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, key)
		}
	}
}

// A pair is the names of both ends of a VETH, the same for both.
type pair [2]string

func pairOf(v *interfaces.Interface) pair {
	a, b := v.GetName(), otherEnd(v).GetName()
	return pair{min(a, b), max(a, b)}
}
