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

// A place is what tells one path from all others, however it is spelled. IPv4 addresses
// are mapped to IPv6, lengths of their prefixes are not.
type pathID struct {
	vrf, out  uint32 // out is the sw_if_index, or none
	dst, next [16]byte
	bits      uint8
}

func newPathID(vrf, out uint32, dst netip.Prefix, next netip.Addr) pathID {
	return pathID{vrf, out, dst.Addr().As16(), next.As16(), uint8(dst.Bits())}
}

// A path is one of a route as VPP has it, as far as a value can say it.
type path struct {
	pathID
	ipv6               bool
	kind               l3.Route_RouteType
	viaVRF             uint32
	weight, preference uint8
}

// pathOf is false for what no value can say.
func pathOf(t ip.IPTable, r ip.IPRoute, p fib_types.FibPath) (out path, ok bool) {
	dst := vppwire.PrefixOf(r.Prefix)
	if !dst.IsValid() {
		return out, false
	}
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
	case p.SwIfIndex == noInterface && p.TableID != t.TableID:
		out.kind, out.viaVRF = l3.Route_INTER_VRF, p.TableID
	}
	return out, true
}

// is tells whether a value that is declared at the path's place says all the same.
func (p path) equals(v *l3.Route) bool {
	return p.sameKind(v) && uint32(p.weight) == max(v.GetWeight(), 1) && uint32(p.preference) == v.GetPreference()
}

// sameKind says that the path is of the type of v. VPP does not keep the table of a path that
// leaves by an interface.
func (p path) sameKind(v *l3.Route) bool {
	if p.out != noInterface && v.GetType() == l3.Route_INTER_VRF {
		return p.kind == l3.Route_INTRA_VRF
	}
	return p.kind == v.GetType() && p.viaVRF == v.GetViaVrfId()
}

// value is the path as a value; nil: its interface is gone, which has no name then.
func (p path) route(names map[uint32]string) *l3.Route {
	v := &l3.Route{
		VrfId: p.vrf, Type: p.kind, ViaVrfId: p.viaVRF, Weight: uint32(p.weight), Preference: uint32(p.preference),
		DstNetwork: netip.PrefixFrom(p.destination(), int(p.bits)).String(),
	}
	if next := netip.AddrFrom16(p.next).Unmap(); !next.IsUnspecified() {
		v.NextHopAddr = next.String()
	}
	if p.out != noInterface {
		if v.OutgoingInterface = names[p.out]; v.OutgoingInterface == "" {
			return nil
		}
	}
	return v
}

func (p path) destination() netip.Addr {
	if p.ipv6 {
		return netip.AddrFrom16(p.dst)
	}
	return netip.AddrFrom16(p.dst).Unmap()
}

// declared finds the routes that should stand by their place. The key of a route has its
// spelling. One whose interface is gone is where that was: VPP keeps it there, and it has to
// go from there.
type declaredIndex struct {
	desired []scheduler.Desired[*l3.Route]
	byID    map[pathID]int32
}

func (h handler) declaredRoutes(wanted []scheduler.Desired[*l3.Route]) declaredIndex {
	out := declaredIndex{wanted, make(map[pathID]int32, len(wanted))}
	for i, w := range wanted {
		v, index := h.withoutReferences(w.Value), noInterface
		if name := v.GetOutgoingInterface(); name != "" {
			var known bool
			if index, known = h.indexOf(name); !known {
				continue
			}
		}
		dst, err := netip.ParsePrefix(v.GetDstNetwork())
		next, hopErr := nextHopTo(dst, v)
		if err == nil && hopErr == nil {
			out.byID[newPathID(v.GetVrfId(), index, dst, next)] = int32(i)
		}
	}
	return out
}

// found is a path as Retrieve yields it: as it is declared, if it is.
func (d declaredIndex) retrieved(p path, names map[uint32]string) (f scheduler.Found[*l3.Route, struct{}], ok bool) {
	var w scheduler.Desired[*l3.Route]
	at, ours := d.byID[p.pathID]
	if ours {
		w = d.desired[at]
	}
	if ours && p.equals(w.Value) {
		return scheduler.Found[*l3.Route, struct{}]{Key: w.Key, Value: w.Value}, true
	}
	v := p.route(names)
	switch {
	case ours && v == nil:
		v = w.Value
	case ours:
		v.DstNetwork, v.NextHopAddr, v.OutgoingInterface = w.Value.GetDstNetwork(), w.Value.GetNextHopAddr(), w.Value.GetOutgoingInterface()
	case v == nil:
		return f, false
	}
	return scheduler.Found[*l3.Route, struct{}]{Key: w.Key, Value: v, OwnerUnknown: !ours}, true
}

// withoutReferences is v with addresses in place of references to ones that are known.
func (h handler) withoutReferences(v *l3.Route) *l3.Route {
	if !alloc.Is(v.GetDstNetwork()) && !alloc.Is(v.GetNextHopAddr()) {
		return v
	}
	v = proto.CloneOf(v)
	v.DstNetwork = alloc.Network(h.Allocations, v.GetDstNetwork(), v.GetOutgoingInterface())
	v.NextHopAddr = alloc.Host(h.Allocations, v.GetNextHopAddr(), v.GetOutgoingInterface())
	return v
}
