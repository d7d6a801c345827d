package standing

import (
	"net/netip"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// A Thing is what the kernel tells one object of ours from others by.
type Thing struct {
	NS   kernel.ID
	Sort Sort
	Link int // the link itself or the one it is on; 0 for a route, which a new one replaces whatever its link is
	// Of an address, a route, a neighbour.
	Prefix netip.Prefix
	// Of a route.
	Table, Metric uint32
}

// A Sort of things.
type Sort uint8

// The sorts of things.
const (
	AnInterface Sort = iota
	AMembership      // of a link in a VRF
	AnAddress
	ARoute
	ANeighbour
)

// Interface is a link.
func Interface(ns kernel.ID, link int) Thing { return Thing{NS: ns, Sort: AnInterface, Link: link} }

// Membership is that of a link in a VRF.
func Membership(ns kernel.ID, link int) Thing { return Thing{NS: ns, Sort: AMembership, Link: link} }

// Address is an address of a link.
func Address(ns kernel.ID, a kernel.Addr) Thing {
	return Thing{NS: ns, Sort: AnAddress, Link: a.Link, Prefix: a.Prefix}
}

// Route is a route.
func Route(ns kernel.ID, r kernel.Route) Thing {
	return Thing{NS: ns, Sort: ARoute, Prefix: r.Dst, Table: r.Table, Metric: r.Metric}
}

// Neighbour is a static neighbour.
func Neighbour(ns kernel.ID, n kernel.Neighbour) Thing {
	return Thing{NS: ns, Sort: ANeighbour, Link: n.Link, Prefix: netip.PrefixFrom(n.IP, n.IP.BitLen())}
}

// thingOf is what an event is about.
func thingOf(ns kernel.ID, what any) Thing {
	switch what := what.(type) {
	case kernel.Link:
		return Interface(ns, what.Index)
	case kernel.Addr:
		return Address(ns, what)
	case kernel.Route:
		return Route(ns, what)
	case kernel.Neighbour:
		return Neighbour(ns, what)
	}
	return Thing{}
}

// gone is the event that t is not there. Of a route it names no link: none has it.
func (t Thing) gone() kernel.Event {
	e := kernel.Event{Gone: true}
	switch t.Sort {
	case AnInterface, AMembership:
		e.What = kernel.Link{Index: t.Link}
	case AnAddress:
		e.What = kernel.Addr{Link: t.Link, Prefix: t.Prefix}
	case ARoute:
		e.What = kernel.Route{Dst: t.Prefix, Table: t.Table, Metric: t.Metric}
	case ANeighbour:
		e.What = kernel.Neighbour{Link: t.Link, IP: t.Prefix.Addr()}
	}
	return e
}
