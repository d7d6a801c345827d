package iface

import (
	"sync"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// pairs are the VETH pairs that are being made or undone. Each has a lock of its own: a verb
// that waits for the kernel keeps only the other end of its pair waiting. The zero value has none.
type pairs struct {
	mu    sync.Mutex // guards locks, and their users
	locks map[[2]string]*pairLock
}

// A pairLock is held by one of the two ends of a VETH at a time. It is forgotten when
// nobody uses it, so the map does not grow with the number of names ever seen.
type pairLock struct {
	held  chan struct{} // has a token while somebody holds it
	users int           // that hold it or wait for it
}

// hold waits until nobody else works at v's pair, and returns how that ends.
func (p *pairs) hold(v *interfaces.Interface) (release func()) {
	a, b := v.GetName(), otherEnd(v).GetName()
	// Both ends must find the same lock.
	pair := [2]string{min(a, b), max(a, b)}
	p.mu.Lock()
	if p.locks == nil {
		p.locks = map[[2]string]*pairLock{}
	}
	lock := p.locks[pair]
	if lock == nil {
		lock = &pairLock{held: make(chan struct{}, 1)}
		p.locks[pair] = lock
	}
	lock.users++
	p.mu.Unlock()
	// Outside of mu, so that other pairs go on.
	lock.held <- struct{}{}
	return func() {
		<-lock.held
		p.mu.Lock()
		defer p.mu.Unlock()
		if lock.users--; lock.users == 0 {
			delete(p.locks, pair)
		}
	}
}
