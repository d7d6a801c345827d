package drift

import (
	"net/netip"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// An Object is the identity of an object in the kernel: the attributes that no
// two objects of one kind share.
//
//	kind         NS, Kind and
//	interface    Link
//	membership   Link
//	VRF rules    Link: those of a namespace, as far as this VRF needs them
//	address      Link, Prefix
//	route        Prefix, Table, Metric: its place, where the agent has one route at most
//	neighbour    Link, Prefix
//
// Other programs may have routes in the place of a route, too. So an event about a place counts only if it
// is about the very route of the agent, or says that a route has taken its place; see record.note.
type Object struct {
	NS   kernel.ID
	Kind Kind
	// Link is the interface itself, or the one that the object is on. It is 0 for
	// a route, since a route takes the place of another even if their links differ.
	Link int
	// Prefix of an address or route, or the IP of a neighbour.
	Prefix netip.Prefix
	// Table and Metric of a route.
	Table, Metric uint32
}

// A Kind of objects. Objects are checked in the order of their kinds.
type Kind uint8

// The kinds of objects.
const (
	KindInterface  Kind = iota
	KindMembership      // of a link in a VRF
	KindVRFRules
	KindAddress
	KindRoute
	KindNeighbour
	// kindSilentRoutes stands for all recorded routes of a link. Only the queue of the
	// loop has such objects: one event can concern thousands of routes.
	kindSilentRoutes
	// kindConnected stands for the recorded addresses of a link in one network of which somebody has removed a route
	// that the kernel adds with them. Only the queue of the loop has such objects.
	kindConnected
)

// Interface identifies a link by its index.
func Interface(ns kernel.ID, link int) Object { return Object{NS: ns, Kind: KindInterface, Link: link} }

// Membership identifies the membership of a link in a VRF.
func Membership(ns kernel.ID, link int) Object {
	return Object{NS: ns, Kind: KindMembership, Link: link}
}

// VRFRules identifies the rules that a VRF needs.
func VRFRules(ns kernel.ID, vrf int) Object { return Object{NS: ns, Kind: KindVRFRules, Link: vrf} }

// Address identifies an address of a link.
func Address(ns kernel.ID, a kernel.Addr) Object {
	return Object{NS: ns, Kind: KindAddress, Link: a.Link, Prefix: a.Prefix}
}

// Route identifies the place of a route.
func Route(ns kernel.ID, r kernel.Route) Object {
	return Object{NS: ns, Kind: KindRoute, Prefix: r.Dst, Table: r.Table, Metric: r.Metric}
}

// Neighbour identifies a static neighbour.
func Neighbour(ns kernel.ID, n kernel.Neighbour) Object {
	return Object{NS: ns, Kind: KindNeighbour, Link: n.Link, Prefix: netip.PrefixFrom(n.IP, n.IP.BitLen())}
}

// objectOf returns the object that an event describes.
func objectOf(ns kernel.ID, what any) Object {
	switch what := what.(type) {
	case kernel.Link:
		return Interface(ns, what.Index)
	case kernel.Addr:
		if what.Peer.IsValid() {
			return Object{} // beside one of the agent, which never has a peer
		}
		return Address(ns, what)
	case kernel.Route:
		return Route(ns, what)
	case kernel.Neighbour:
		return Neighbour(ns, what)
	}
	return Object{}
}

// flushed returns the routes that the kernel may have removed without a notification. It does so
// with IPv4 routes when the last IPv4 address of a link goes, and when a link is set down. With
// the setting net.ipv6.route.skip_notify_on_dev_down, which routing daemons ask for, it does so
// with IPv6 routes when a link is set down, and when a link loses IPv6 and so its addresses. A
// later event does not take this back: the routes of a link that was down for a moment are gone.
func flushed(ns kernel.ID, e kernel.Event) (o Object, ok bool) {
	switch what := e.What.(type) {
	case kernel.Link:
		return Object{NS: ns, Kind: kindSilentRoutes, Link: what.Index}, e.Gone || !what.Up
	case kernel.Addr:
		return Object{NS: ns, Kind: kindSilentRoutes, Link: what.Link}, e.Gone
	}
	return Object{}, false
}

// disconnected returns the addresses with which the kernel may have added the route of an event: the kernel or a user
// has removed a route on a link.
func disconnected(ns kernel.ID, e kernel.Event) (o Object, ok bool) {
	r, route := e.What.(kernel.Route)
	ok = route && (e.Gone || e.Replaces) && !r.Gateway.IsValid() && r.Link != 0
	return Object{NS: ns, Kind: kindConnected, Link: r.Link, Prefix: r.Dst}, ok
}

// connects reports whether the kernel adds a route to dst with the address t: to its own network, to an address in that,
// or to all multicast addresses of IPv6.
func (t Object) connects(dst netip.Prefix) bool {
	return t.Prefix.Contains(dst.Addr()) || dst.Addr().IsMulticast() && t.Prefix.Addr().Is6()
}

// gone returns the event that reports t as missing. For a route it is an empty list of the routes in its place.
func (t Object) gone() kernel.Event {
	e := kernel.Event{Gone: true}
	switch t.Kind {
	case KindInterface, KindMembership:
		e.What = kernel.Link{Index: t.Link}
	case KindVRFRules:
		e.What = kernel.VRFRule{}
	case KindAddress:
		e.What = kernel.Addr{Link: t.Link, Prefix: t.Prefix}
	case KindRoute:
		e.What = []kernel.Route(nil)
	case KindNeighbour:
		e.What = kernel.Neighbour{Link: t.Link, IP: t.Prefix.Addr()}
	case kindSilentRoutes, kindConnected: // they are only queued, and never suspects
	}
	return e
}
