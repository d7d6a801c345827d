package kinds

import "sync"

// Bonded are the members of bonds by name. A member has the MAC address of its bond, and gets its
// own one back from VPP when it leaves. An address that is declared meanwhile is postponed until
// then: it would be one that the bond does not receive for. The zero value is empty.
type Bonded struct {
	mu  sync.Mutex        // guards all
	all map[string]string // the postponed address of each member; empty: none
}

// Join adds a member.
func (b *Bonded) Join(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]string{}
	}
	if _, is := b.all[name]; !is {
		b.all[name] = ""
	}
}

// Leave removes a member.
func (b *Bonded) Leave(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, name)
}

// Postpone postpones an address if the interface is a member, and tells whether it is.
func (b *Bonded) Postpone(name, mac string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, is := b.all[name]
	if is {
		b.all[name] = mac
	}
	return is
}

// Postponed returns the postponed address of a member; empty: none.
func (b *Bonded) Postponed(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[name]
}

// Replace sets all members.
func (b *Bonded) Replace(all map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = all
}
