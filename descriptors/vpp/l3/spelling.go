package l3

import (
	"net/netip"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// A place is what tells one route from all others, however it is spelled.
type place struct {
	vrf  uint32
	dst  netip.Prefix
	next netip.Addr
	out  string
}

func placeOf(v *l3.Route) (place, bool) {
	dst, err := netip.ParsePrefix(v.GetDstNetwork())
	next, hopErr := hop(v)
	return place{v.GetVrfId(), dst, next, v.GetOutgoingInterface()}, err == nil && hopErr == nil
}

// spelled knows how declared routes are spelled: the key has the spelling.
type spelled map[place]*l3.Route

func (h handler) spellings(wanted []scheduler.Wanted[*l3.Route]) spelled {
	out := make(spelled, len(wanted))
	for _, w := range wanted {
		if at, ok := placeOf(h.withoutReferences(w.Value)); ok {
			out[at] = w.Value
		}
	}
	return out
}

// takes spells v as the declared route in its place, and tells whether there is one.
func (s spelled) takes(v *l3.Route) bool {
	at, _ := placeOf(v)
	w := s[at]
	if w != nil {
		v.DstNetwork, v.NextHopAddr = w.GetDstNetwork(), w.GetNextHopAddr()
	}
	return w != nil
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
