package l3

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

// normalizeRoute removes fields that the route's type does not use, and the prefix length of
// the next hop. An IPv6 next hop gets the notation of Retrieve.
func normalizeRoute(_ string, v *l3.Route) (*l3.Route, []string) {
	// A DROP route by an interface would wait for that interface. VPP reports neither the
	// interface nor the next hop.
	drops := v.GetType() == l3.Route_DROP && (v.GetOutgoingInterface() != "" || v.GetNextHopAddr() != "")
	via := v.GetType() == l3.Route_INTRA_VRF && v.GetViaVrfId() != 0
	hop := v.GetNextHopAddr()
	if !drops && !via && !strings.ContainsAny(hop, "/:") {
		return v, nil
	}
	var warnings []string
	n := proto.CloneOf(v)
	if drops {
		warnings = ignore(warnings, "outgoing_interface", &n.OutgoingInterface)
		warnings = ignore(warnings, "next_hop_addr", &n.NextHopAddr)
	}
	if via {
		warnings = append(warnings, models.Ignored("via_vrf_id", v.GetViaVrfId(), "only a route of type INTER_VRF has one"))
		n.ViaVrfId = 0
	}
	warnings = append(warnings, spelling.Host("next_hop_addr", &n.NextHopAddr)...)
	n.NextHopAddr = spelling.Canonical(n.NextHopAddr)
	if len(warnings) == 0 && n.NextHopAddr == hop {
		return v, nil
	}
	return n, warnings
}

// ignore empties a field that a route of type DROP does not use, with a warning if it is set.
func ignore(warnings []string, name string, field *string) []string {
	if *field == "" {
		return warnings
	}
	warnings = append(warnings, models.Ignored(name, *field, "a route of type DROP has none"))
	*field = ""
	return warnings
}

// normalizeARP removes the prefix length of the neighbour and uses the notation of Retrieve.
func normalizeARP(_ string, v *l3.ARPEntry) (*l3.ARPEntry, []string) {
	addr := v.GetIpAddress()
	warnings := host("ip_address", &addr)
	if addr == v.GetIpAddress() {
		return v, nil
	}
	v = proto.CloneOf(v)
	v.IpAddress = addr
	return v, warnings
}

// normalizeTEIB does the same for the peer and its next hop.
func normalizeTEIB(_ string, v *l3.TeibEntry) (*l3.TeibEntry, []string) {
	peer, next := v.GetPeerAddr(), v.GetNextHopAddr()
	warnings := append(host("peer_addr", &peer), host("next_hop_addr", &next)...)
	if peer == v.GetPeerAddr() && next == v.GetNextHopAddr() {
		return v, nil
	}
	v = proto.CloneOf(v)
	v.PeerAddr, v.NextHopAddr = peer, next
	return v, warnings
}

// normalizeL3XC does the same for the next hops of all paths.
func normalizeL3XC(_ string, v *l3.L3XConnect) (*l3.L3XConnect, []string) {
	var n *l3.L3XConnect
	var warnings []string
	for i, p := range v.GetPaths() {
		next := p.GetNextHopAddr()
		warnings = append(warnings, host(fmt.Sprintf("paths[%d].next_hop_addr", i), &next)...)
		if next == p.GetNextHopAddr() {
			continue
		}
		if n == nil {
			n = proto.CloneOf(v)
		}
		n.GetPaths()[i].NextHopAddr = next
	}
	if n == nil {
		return v, nil
	}
	return n, warnings
}

// host normalizes the address of one host in place and returns the warnings.
func host(field string, addr *string) (warnings []string) {
	warnings = spelling.Host(field, addr)
	*addr = spelling.Canonical(*addr)
	return warnings
}
