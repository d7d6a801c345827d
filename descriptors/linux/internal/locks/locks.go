// Package locks has locks by key: for the two ends of a VETH, for example, or for the addresses of one link.
package locks

import "sync"

// Locks have a lock for each key, so that a verb that waits for the kernel keeps only those waiting that work at the same
// thing. The zero value has none. Any goroutine may use it.
type Locks[K comparable] struct {
	mu   sync.Mutex // guards held, and their users
	held map[K]*lock
}

// A lock is held by one at a time. It is forgotten when nobody uses it, so the map does not grow with the number of keys
// ever seen.
type lock struct {
	held  chan struct{} // has a token while somebody holds it
	users int           // that hold it or wait for it
}

// Hold waits until nobody else works at key. The caller calls release when it has ended.
func (l *Locks[K]) Hold(key K) (release func()) {
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
