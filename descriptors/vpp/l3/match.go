package l3

import (
	"net/netip"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// A pathID identifies a path independent of notation. IPv4 addresses are mapped to IPv6;
// prefix lengths are not changed. It is comparable, so that it can be the key of a map.
// Two routes of one prefix that differ in weight only are the same path to VPP.
type pathID struct {
	vrf, out  uint32 // table, and sw_if_index or noInterface
	dst, next [16]byte
	bits      uint8
}

// newPathID returns the ID of a path.
func newPathID(vrf, out uint32, dst netip.Prefix, next netip.Addr) pathID {
	return pathID{vrf, out, dst.Addr().As16(), next.As16(), uint8(dst.Bits())}
}

// A path is one path of a route in VPP, as far as a value can express it.
type path struct {
	pathID
	ipv6               bool
	kind               l3.Route_RouteType
	viaVRF             uint32
	weight, preference uint8
	shown              *shownPath // nil: nobody looks
}

// pathOf converts VPP's answer. ok is false for paths that no value can express, such as
// those of tunnels.
func pathOf(t *ip.IPTable, r ip.IPRoute, p *fib_types.FibPath) (out path, ok bool) {
	dst := vppwire.PrefixOf(r.Prefix)
	if !dst.IsValid() {
		return out, false
	}
	// An IPv4 route may have an IPv6 next hop, which the protocol of the path says.
	next := vppwire.AddrIn(p.Nh.Address, t.IsIP6 || p.Proto == fib_types.FIB_API_PATH_NH_PROTO_IP6)
	out = path{
		pathID: newPathID(t.TableID, p.SwIfIndex, dst.Masked(), next),
		ipv6:   t.IsIP6, weight: p.Weight, preference: p.Preference,
	}
	switch {
	case p.Type == fib_types.FIB_API_PATH_TYPE_DROP:
		out.kind, out.out = l3.Route_DROP, noInterface
	case p.Type != fib_types.FIB_API_PATH_TYPE_NORMAL:
		return out, false
	// A path without an interface looks its next hop up in the table that it names.
	case p.SwIfIndex == noInterface && p.TableID != t.TableID:
		out.kind, out.viaVRF = l3.Route_INTER_VRF, p.TableID
	}
	return out, true
}

// equals reports whether the declared value with the same pathID has the same settings.
func (p path) equals(v *l3.Route) bool {
	return p.sameKind(v) && uint32(p.weight) == max(v.GetWeight(), 1) && uint32(p.preference) == v.GetPreference()
}

// sameKind compares the type of the route. VPP forgets the next hop's table if the path has
// an outgoing interface, so INTER_VRF is read back as INTRA_VRF.
func (p path) sameKind(v *l3.Route) bool {
	if p.out != noInterface && v.GetType() == l3.Route_INTER_VRF {
		return p.kind == l3.Route_INTRA_VRF
	}
	return p.kind == v.GetType() && p.viaVRF == v.GetViaVrfId()
}

// route converts the path to a value, or returns nil if its interface was deleted.
func (p path) route(names map[uint32]string) *l3.Route {
	v := &l3.Route{
		VrfId: p.vrf, Type: p.kind, ViaVrfId: p.viaVRF, Weight: uint32(p.weight), Preference: uint32(p.preference),
		DstNetwork: netip.PrefixFrom(p.destination(), int(p.bits)).String(),
	}
	if next := netip.AddrFrom16(p.next).Unmap(); !next.IsUnspecified() {
		v.NextHopAddr = next.String()
	}
	if p.out != noInterface {
		v.OutgoingInterface = names[p.out]
		if v.OutgoingInterface == "" {
			return nil
		}
	}
	return v
}

// destination returns the address of the prefix in its own IP version.
func (p path) destination() netip.Addr {
	if p.ipv6 {
		return netip.AddrFrom16(p.dst)
	}
	return netip.AddrFrom16(p.dst).Unmap()
}

// A declaredIndex finds declared routes by pathID. Retrieve uses the declared key and
// notation. A route of a deleted interface is indexed by the last sw_if_index: VPP
// still has it there, and it must be deleted there.
type declaredIndex struct {
	desired []scheduler.Desired[*l3.Route]
	byID    map[pathID]int32
	// unseen are those that VPP may have a route of its own for, by number, until one is found; the
	// values are the indexes of their interfaces.
	unseen map[int32]uint32
}

// declaredRoutes indexes the declared routes. Routes with unresolved references are left
// out.
func (h handler) declaredRoutes(wanted []scheduler.Desired[*l3.Route]) declaredIndex {
	out := declaredIndex{wanted, make(map[pathID]int32, len(wanted)), map[int32]uint32{}}
	for i, w := range wanted {
		v, index := h.withoutReferences(w.Value), noInterface
		if name := v.GetOutgoingInterface(); name != "" {
			// An interface that was never seen has no route in VPP either.
			last, known := h.indexOf(name)
			if !known {
				continue
			}
			index = last
		}
		dst, err := netip.ParsePrefix(v.GetDstNetwork())
		next, hopErr := nextHopTo(dst, v)
		if err == nil && hopErr == nil {
			out.byID[newPathID(v.GetVrfId(), index, dst, next)] = int32(i)
			if h.mayBeOutranked(dst) {
				out.unseen[int32(i)] = index
			}
		}
	}
	return out
}

// retrieved returns the path as Retrieve yields it. An unchanged declared route is returned
// as declared.
func (d declaredIndex) retrieved(p *path, names map[uint32]string) (f scheduler.Found[*l3.Route, struct{}], ok bool) {
	var w scheduler.Desired[*l3.Route]
	at, ours := d.byID[p.pathID]
	if ours {
		delete(d.unseen, at)
		w = d.desired[at]
	}
	if ours && p.equals(w.Value) {
		return scheduler.Found[*l3.Route, struct{}]{Key: w.Key, Value: w.Value, Details: p.details()}, true
	}
	v := p.route(names)
	switch {
	case ours && v == nil:
		v = w.Value
	// The declared texts stay, so a route that differs in its weight alone is shown as
	// declared.
	case ours:
		v.DstNetwork, v.NextHopAddr, v.OutgoingInterface = w.Value.GetDstNetwork(), w.Value.GetNextHopAddr(), w.Value.GetOutgoingInterface()
	case v == nil:
		return f, false
	}
	return scheduler.Found[*l3.Route, struct{}]{Key: w.Key, Value: v, OwnerUnknown: !ours, Details: p.details()}, true
}

// ofVPP returns a path that VPP has made itself, unless somebody declares the same: that is then not there. It is only
// shown: a route that is declared must come over the API, by which it has a rank above other sources.
func (d declaredIndex) ofVPP(p *path, names map[uint32]string) (f scheduler.Found[*l3.Route, struct{}], ok bool) {
	if _, declared := d.byID[p.pathID]; declared {
		return f, false
	}
	v := p.route(names)
	if v == nil {
		return f, false
	}
	return scheduler.Found[*l3.Route, struct{}]{Value: v, Foreign: true, Shown: true, Details: p.details()}, true
}

// withoutReferences returns v with allocated addresses in place of references. Unresolved
// references remain.
func (h handler) withoutReferences(v *l3.Route) *l3.Route {
	if !alloc.Is(v.GetDstNetwork()) && !alloc.Is(v.GetNextHopAddr()) {
		return v
	}
	v = proto.CloneOf(v)
	v.DstNetwork = alloc.Network(h.Allocations, v.GetDstNetwork(), v.GetOutgoingInterface())
	v.NextHopAddr = alloc.Host(h.Allocations, v.GetNextHopAddr(), v.GetOutgoingInterface())
	return v
}

// routeIdentity returns the identity of a route: its key in canonical notation, with its references
// resolved. A next hop that VPP sets itself counts as none, so that most keys are canonical.
func (h handler) routeIdentity(_ string, v *l3.Route) scheduler.Claim {
	as := h.withoutReferences(v)
	dst, err := netip.ParsePrefix(as.GetDstNetwork())
	hop := canonical(as.GetNextHopAddr())
	if next, hopErr := netip.ParseAddr(hop); err == nil && hopErr == nil && (next.IsUnspecified() || dst.IsSingleIP() && as.GetOutgoingInterface() != "" && next == dst.Addr()) {
		hop = ""
	}
	return scheduler.Claim{
		Resource: keyOf(&l3.Route{VrfId: as.GetVrfId(), OutgoingInterface: as.GetOutgoingInterface(), DstNetwork: as.GetDstNetwork(), NextHopAddr: hop}),
		Field:    "next_hop_addr", Value: v.GetNextHopAddr(), Want: "a path that no other route has",
	}
}

// reported returns v as Retrieve reports it while it is not declared: with addresses in place of
// references, and with the next hop that VPP has.
func (h handler) reported(v *l3.Route) *l3.Route {
	v = h.withoutReferences(v)
	declared, _ := netip.ParseAddr(v.GetNextHopAddr())
	next, err := nextHop(v)
	// Most routes are declared with their next hop, so they cost no text.
	if err != nil || declared == next && !next.IsUnspecified() {
		return v
	}
	hop := ""
	if !next.IsUnspecified() {
		hop = next.String()
	}
	if hop != v.GetNextHopAddr() {
		v = proto.CloneOf(v)
		v.NextHopAddr = hop
	}
	return v
}
