package drift

import "github.com/keyplane/keyplane/descriptors/linux/internal/kernel"

// A verb writes to the kernel first, and records what it has written afterwards. Another program may remove that in
// between, also one of the thousands of routes that are written together. The event then comes while nothing is recorded,
// so it is kept for a while, and what is recorded is checked if an event concerns it that came since the verb began.

// mostPast bounds the events that are kept. If there were more since a verb began, what it records is checked.
const mostPast = 256

// past are the last objects that went or changed while they were not recorded.
type past struct {
	ring [mostPast]missed
	n    uint64 // so many were added
}

// missed is one of them.
type missed struct {
	Object
	clock uint64 // of the record
}

// add keeps o.
func (p *past) add(o Object, clock uint64) {
	p.ring[p.n%mostPast] = missed{o, clock}
	p.n++
}

// remember keeps what an event says about objects that are not recorded, and about those that belong to an unrecorded one.
func (r *record) remember(ns kernel.ID, e kernel.Event) {
	keep := func(o Object, ok bool) {
		if ok {
			r.clock++
			r.past.add(o, r.clock)
		}
	}
	o := objectOf(ns, e.What)
	if r.objects[o] == nil {
		a, address := e.What.(kernel.Addr)
		_, route := e.What.(kernel.Route)
		_, neighbour := e.What.(kernel.Neighbour)
		keep(o, neighbour || route && (e.Gone || e.Replaces) || address && !a.Peer.IsValid() && (e.Gone || a.Duplicate))
	}
	keep(flushed(ns, e))
	keep(disconnected(ns, e))
}

// missed returns what has to be checked, since it may have gone between the start of the verb that made o, as the clock
// showed it, and its record: o itself, or a route that the kernel has added with it.
func (r *record) missed(o Object, e Entry, began uint64) (check []Object) {
	if o.Kind < KindAddress { // one by one, and cheap
		return []Object{o}
	}
	for i := range uint64(mostPast) {
		if i == r.past.n {
			return check
		}
		one := r.past.ring[(r.past.n-1-i)%mostPast]
		switch {
		case one.clock <= began:
			return check
		case one.Object == o, one.Kind == kindSilentRoutes && o.Kind == KindRoute && linkOf(o, e) == link{one.NS, one.Link}:
			check = append(check, o)
		case one.Kind == kindConnected && one.NS == o.NS && one.Link == o.Link && o.Kind == KindAddress && o.connects(one.Prefix):
			check = append(check, one.Object)
		}
	}
	return append(check, o)
}
