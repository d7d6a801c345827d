package l3

import (
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// book is a book of allocations.
type book map[string]alloc.Allocation

func (b book) Get(name string) (alloc.Allocation, bool) { a, ok := b[name]; return a, ok }

// onVPP returns a handler for a VPP that has the loopbacks if1 and if2 and table 5 of both
// IP versions.
func onVPP(t testing.TB, release string) (handler, *simulated.VPP) {
	t.Helper()
	vpp := simulated.Start(t, release)
	c := vpp.Dial()
	index := existing.Loopbacks(vpp, c, "if1", "if2")
	for _, ipv6 := range []bool{false, true} {
		vpp.Ask(c, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 5, IsIP6: ipv6}}, &ip.IPTableAddDelReply{})
	}
	return newHandler(Options{API: c, Interfaces: index, Allocations: book{
		"network/net1/interface/if1": {Address: netip.MustParsePrefix("10.88.0.1/16"), Gateway: netip.MustParsePrefix("10.88.0.9/32")},
		"network/net6/interface/if2": {Address: netip.MustParsePrefix("fd88::1/64")},
	}}), vpp
}

// onEach runs a suite on each release.
func onEach[V proto.Message, M any](t *testing.T, descriptor func(h handler) scheduler.Descriptor[V, M], s conformance.Suite[V, M]) {
	t.Helper()
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[V, M] {
		h, _ := onVPP(t, release)
		return descriptor(h)
	}, s)
}

func TestRouteConforms(t *testing.T) {
	r := func(more string) *l3.Route {
		return testkit.Parse[*l3.Route](t, `dst_network: "10.9.0.0/16" outgoing_interface: "if1" next_hop_addr: "10.1.0.2" `+more)
	}
	onEach(t, handler.routeDescriptor, conformance.Suite[*l3.Route, struct{}]{
		Values: []scheduler.Desired[*l3.Route]{
			{Value: r(``)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "10.9.0.0/16" outgoing_interface: "if2" next_hop_addr: "10.1.0.3" weight: 3`)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "0.0.0.0/0" outgoing_interface: "if2"`)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "10.7.0.0/24" next_hop_addr: "10.1.0.4"`)},
			{Value: testkit.Parse[*l3.Route](t, `vrf_id: 5 dst_network: "10.7.0.0/24" next_hop_addr: "10.1.0.4"`)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "10.13.0.0/24"`)}, // VPP takes it, and drops the packets
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "10.6.0.0/24" type: DROP outgoing_interface: "if2"`)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "10.12.0.0/24" type: DROP outgoing_interface: "if2" next_hop_addr: "10.1.0.2"`)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "fd12::/64" type: DROP next_hop_addr: "fd01::2"`)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "10.3.0.0/24" type: INTER_VRF via_vrf_id: 5 outgoing_interface: "if2"`)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "10.2.0.0/24" outgoing_interface: "if1" next_hop_addr: "10.1.0.9/24" via_vrf_id: 5`)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "10.10.0.0/24" outgoing_interface: "if1" next_hop_addr: "FD01:0::9"`)},
			{Value: testkit.Parse[*l3.Route](t, `vrf_id: 5 dst_network: "10.11.0.0/24" next_hop_addr: "fd01::9"`)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "10.5.0.0/24" type: INTER_VRF via_vrf_id: 5`)},
			{Value: testkit.Parse[*l3.Route](t, `vrf_id: 5 dst_network: "10.4.0.0/24" type: INTER_VRF next_hop_addr: "10.1.0.5"`)},
			{Value: testkit.Parse[*l3.Route](t, `vrf_id: 5 dst_network: "fd09::/64" outgoing_interface: "if2" next_hop_addr: "FD02:0::2"`)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "fd08::/64" type: INTER_VRF via_vrf_id: 5`)},
			{Value: testkit.Parse[*l3.Route](t, `dst_network: "alloc:net1/if1" outgoing_interface: "if2" next_hop_addr: "alloc:net1/if1/GW"`)},
			{Value: testkit.Parse[*l3.Route](t, `vrf_id: 5 dst_network: "alloc:net6/if2" outgoing_interface: "if1"`)},
		},
		Changes: []conformance.Change[*l3.Route]{
			{Name: "weight", From: r(``), To: r(`weight: 5`), How: conformance.Updated},
			{Name: "preference", From: r(``), To: r(`preference: 7`), How: conformance.Updated},
			{Name: "type", From: r(``), To: r(`type: INTER_VRF via_vrf_id: 5`), How: conformance.Recreated},
			{Name: "length of the next hop", From: r(``), To: testkit.Parse[*l3.Route](t, `dst_network: "10.9.0.0/16" outgoing_interface: "if1" next_hop_addr: "10.1.0.2/24"`), How: conformance.Unchanged},
			{Name: "default weight", From: r(``), To: r(`weight: 1`), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*l3.Route]{
			{Name: "all at once", Value: &l3.Route{DstNetwork: "fd00::1/16", NextHopAddr: "10.0.0.1", Weight: 256, Preference: 256, ViaVrfId: 3},
				Fields: []string{"dst_network", "next_hop_addr", "weight", "preference"}},
			{Name: "neither", Value: &l3.Route{DstNetwork: "10.0.0.0", NextHopAddr: "x", OutgoingInterface: "if1"}, Fields: []string{"dst_network", "next_hop_addr"}},
			{Name: "no tables", Value: &l3.Route{Type: l3.Route_INTER_VRF, VrfId: invalidTable, ViaVrfId: invalidTable - 1, DstNetwork: "10.1.0.0/16"}, Fields: []string{"vrf_id"}},
			{Name: "via no table", Value: &l3.Route{Type: l3.Route_INTER_VRF, ViaVrfId: invalidTable, DstNetwork: "10.1.0.0/16"}, Fields: []string{"via_vrf_id"}},
			{Name: "into itself", Value: &l3.Route{DstNetwork: "10.1.0.0/16", Type: l3.Route_INTER_VRF, OutgoingInterface: "if1"},
				Fields: []string{"via_vrf_id"}},
			{Name: "by a group", Value: &l3.Route{DstNetwork: "10.1.0.0/16", NextHopAddr: "224.0.0.1"}, Fields: []string{"next_hop_addr"}},
			{Name: "no such type", Value: &l3.Route{DstNetwork: "10.1.0.0/16", Type: 9}, Fields: []string{"type"}},
			{Name: "gateway of no interface", Value: &l3.Route{DstNetwork: "10.1.0.0/16", NextHopAddr: "alloc:net/GW"}, Fields: []string{"next_hop_addr"}},
			{Name: "references", Value: &l3.Route{DstNetwork: "alloc:net", NextHopAddr: "alloc:net/if"}, Fields: []string{"dst_network", "next_hop_addr"}},
		},
	})
}

func TestVRFConforms(t *testing.T) {
	v := func(text string) *l3.VrfTable { return testkit.Parse[*l3.VrfTable](t, text) }
	onEach(t, func(h handler) scheduler.Descriptor[*l3.VrfTable, struct{}] {
		for _, ipv6 := range []bool{false, true} {
			_ = h.API.Call(t.Context(), &ip.IPTableAddDel{Table: ip.IPTable{TableID: 5, IsIP6: ipv6}}, &ip.IPTableAddDelReply{})
		}
		return h.vrfDescriptor()
	}, conformance.Suite[*l3.VrfTable, struct{}]{
		Values: []scheduler.Desired[*l3.VrfTable]{
			{Value: v(`id: 7 label: "blue" flow_hash_settings: { use_src_ip: true }`)},
			{Value: v(`id: 7 protocol: IPV6`)},
			{Value: v(`id: 4294967294`)},
		},
		Changes: []conformance.Change[*l3.VrfTable]{
			{Name: "hash", From: v(`id: 8`), To: v(`id: 8 flow_hash_settings: { use_src_ip: true symmetric: true }`), How: conformance.Updated},
			{Name: "label", From: v(`id: 8`), To: v(`id: 8 label: "green"`), How: conformance.Recreated},
			{Name: "default label", From: v(`id: 8`), To: v(`id: 8 label: "ipv4-VRF:8"`), How: conformance.Unchanged},
			{Name: "default label of IPv6", From: v(`id: 8 protocol: IPV6 label: "ipv6-VRF:8"`), To: v(`id: 8 protocol: IPV6`), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*l3.VrfTable]{
			{Name: "zero byte", Value: &l3.VrfTable{Id: 1, Label: "a\x00b"}, Fields: []string{"label"}},
			{Name: "all at once", Value: &l3.VrfTable{Id: 1<<32 - 1, Protocol: 7, Label: string(make([]byte, 64))}, Fields: []string{"id", "protocol", "label"}},
		},
	})
}

func TestARPConforms(t *testing.T) {
	n := func(ip, mac string, static bool) *l3.ARPEntry {
		return &l3.ARPEntry{Interface: "if1", IpAddress: ip, PhysAddress: mac, Static: static}
	}
	const mac = "02:fe:00:00:00:09"
	onEach(t, handler.arpDescriptor, conformance.Suite[*l3.ARPEntry, struct{}]{
		Values: []scheduler.Desired[*l3.ARPEntry]{
			{Value: n("10.1.0.9", mac, true)},
			{Value: n("10.1.0.10", mac, false)},
			{Value: n("FD01:0::9", "02:FE:00:00:00:09", true)},
			{Value: n("10.1.0.11/24", mac, true)},
		},
		Changes: []conformance.Change[*l3.ARPEntry]{
			{Name: "MAC", From: n("10.1.0.9", mac, true), To: n("10.1.0.9", "02:fe:00:00:00:0a", true), How: conformance.Updated},
			{Name: "static", From: n("10.1.0.9", mac, false), To: n("10.1.0.9", mac, true), How: conformance.Updated},
			{Name: "dynamic", From: n("10.1.0.9", mac, true), To: n("10.1.0.9", "02:fe:00:00:00:0a", false), How: conformance.Recreated},
			{Name: "spelling", From: n("10.1.0.9", mac, true), To: n("10.1.0.9", "02:FE:00:00:00:09", true), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*l3.ARPEntry]{
			{Name: "all at once", Value: &l3.ARPEntry{IpAddress: "x", PhysAddress: "y"}, Fields: []string{"interface", "ip_address", "phys_address"}},
		},
	})
}

func TestTEIBConforms(t *testing.T) {
	v := func(text string) *l3.TeibEntry { return testkit.Parse[*l3.TeibEntry](t, `interface: "if1" `+text) }
	const peer = `peer_addr: "10.1.0.7" `
	onEach(t, handler.teibDescriptor, conformance.Suite[*l3.TeibEntry, struct{}]{
		Values: []scheduler.Desired[*l3.TeibEntry]{
			{Value: v(peer + `next_hop_addr: "10.9.0.7"`)},
			{Value: v(`peer_addr: "10.1.0.8" next_hop_addr: "fd00::8" vrf_id: 5`)},
			{Value: v(`peer_addr: "FD01:0::7/64" next_hop_addr: "10.9.0.8/24"`)},
		},
		Changes: []conformance.Change[*l3.TeibEntry]{
			{Name: "next hop", From: v(peer + `next_hop_addr: "10.9.0.7"`), To: v(peer + `next_hop_addr: "10.9.0.8"`), How: conformance.Recreated},
			{Name: "VRF", From: v(peer + `next_hop_addr: "10.9.0.7"`), To: v(peer + `next_hop_addr: "10.9.0.7" vrf_id: 5`), How: conformance.Recreated},
			{Name: "spelling", From: v(peer + `next_hop_addr: "FD00:0::7"`), To: v(peer + `next_hop_addr: "fd00::7"`), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*l3.TeibEntry]{
			{Name: "all at once", Value: &l3.TeibEntry{PeerAddr: "x", VrfId: invalidTable}, Fields: []string{"interface", "peer_addr", "next_hop_addr", "vrf_id"}},
		},
	})
}

func TestL3XConnectConforms(t *testing.T) {
	v := func(text string) *l3.L3XConnect { return testkit.Parse[*l3.L3XConnect](t, `interface: "if1" `+text) }
	const one, two = `paths: { outgoing_interface: "if1" next_hop_addr: "10.1.0.3" } `, `paths: { outgoing_interface: "if2" next_hop_addr: "10.2.0.3" weight: 3 preference: 2 } `
	onEach(t, handler.l3xcDescriptor, conformance.Suite[*l3.L3XConnect, struct{}]{
		Values: []scheduler.Desired[*l3.L3XConnect]{
			{Value: v(one + two)},
			{Value: v(`protocol: IPV6 paths: { outgoing_interface: "if2" next_hop_addr: "FD02:0::3" }`)},
			{Value: testkit.Parse[*l3.L3XConnect](t, `interface: "if2" paths: { outgoing_interface: "if1" }`)},
		},
		Changes: []conformance.Change[*l3.L3XConnect]{
			{Name: "one path less", From: v(one + two), To: v(two), How: conformance.Updated},
			{Name: "weight", From: v(one), To: v(`paths: { outgoing_interface: "if1" next_hop_addr: "10.1.0.3" weight: 7 }`), How: conformance.Updated},
			{Name: "order", From: v(one + two), To: v(two + one), How: conformance.Unchanged},
			{Name: "defaults", From: v(`paths: { outgoing_interface: "if1" }`), To: v(`paths: { outgoing_interface: "if1" next_hop_addr: "0.0.0.0" weight: 1 }`), How: conformance.Unchanged},
			{Name: "length of the next hop", From: v(one), To: v(`paths: { outgoing_interface: "if1" next_hop_addr: "10.1.0.3/24" }`), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*l3.L3XConnect]{
			{Name: "nothing", Value: &l3.L3XConnect{Protocol: 7}, Fields: []string{"interface", "protocol", "paths"}},
			{Name: "all of a path", Value: v(`paths: { next_hop_addr: "fd00::1" weight: 256 preference: 256 }`),
				Fields: []string{"paths[0].outgoing_interface", "paths[0].next_hop_addr", "paths[0].weight", "paths[0].preference"}},
			{Name: "zone", Value: v(`protocol: IPV6 paths: { outgoing_interface: "if1" next_hop_addr: "fe80::1%if1" }`), Fields: []string{"paths[0].next_hop_addr"}},
		},
	})
}

func TestVRRPConforms(t *testing.T) {
	const router, ipv4 = `interface: "if1" vr_id: 7 `, `priority: 100 interval: 1000 ip_addresses: "10.1.0.5" ip_addresses: "10.1.0.6" `
	v := func(text string) *l3.VRRPEntry { return testkit.Parse[*l3.VRRPEntry](t, router+text) }
	onEach(t, handler.vrrpDescriptor, conformance.Suite[*l3.VRRPEntry, struct{}]{
		Values: []scheduler.Desired[*l3.VRRPEntry]{
			{Value: v(ipv4 + `preempt: true accept: true enabled: true`)},
			{Value: testkit.Parse[*l3.VRRPEntry](t, `interface: "if1" vr_id: 8 priority: 1 interval: 65535 ip_addresses: "FD00:0::5" enabled: true`)},
			{Value: testkit.Parse[*l3.VRRPEntry](t, `interface: "if2" vr_id: 7 priority: 254 interval: 10 ip_addresses: "10.1.0.5" unicast: true`)},
		},
		Changes: []conformance.Change[*l3.VRRPEntry]{
			{Name: "start", From: v(ipv4), To: v(ipv4 + `enabled: true`), How: conformance.Updated},
			{Name: "stop", From: v(ipv4 + `enabled: true`), To: v(ipv4), How: conformance.Updated},
			{Name: "priority", From: v(ipv4), To: v(`priority: 101 interval: 1000 ip_addresses: "10.1.0.5"`), How: conformance.Recreated},
			{Name: "another IP version", From: v(ipv4), To: v(`priority: 100 interval: 1000 ip_addresses: "fd00::7"`), How: conformance.Recreated},
			{Name: "order, and what VPP does not tell apart", From: v(ipv4), To: v(`priority: 100 interval: 1009 ip_addresses: "10.1.0.6" ip_addresses: "10.1.0.5"`), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*l3.VRRPEntry]{
			{Name: "nothing", Value: &l3.VRRPEntry{}, Fields: []string{"interface", "vr_id", "priority", "interval", "ip_addresses"}},
			{Name: "too much", Value: testkit.Parse[*l3.VRRPEntry](t, `vr_id: 256 priority: 256 interval: 65536 ip_addresses: "10.0.0.1" ip_addresses: "x" ip_addresses: "fd00::1"`),
				Fields: []string{"interface", "vr_id", "priority", "interval", "ip_addresses[1]", "ip_addresses[2]"}},
			{Name: "no peers", Value: v(ipv4 + `unicast: true enabled: true`), Fields: []string{"unicast"}},
		},
	})
}

// TestOwnerWaitsForItsAddresses: VPP refuses a router of the highest priority without.
func TestOwnerWaitsForItsAddresses(t *testing.T) {
	owner := testkit.Parse[*l3.VRRPEntry](t, `interface: "if1" vr_id: 7 priority: 255 interval: 1000 ip_addresses: "10.1.0.5" ip_addresses: "10.88.0.1"`)
	h, _ := onVPP(t, "")
	deps := h.vrrpDependencies("", owner)
	if len(deps) != 3 {
		t.Fatalf("depends on %+v", deps)
	}
	for key, want := range map[string]bool{
		"vpp/interface/if1/address/static/10.1.0.5/24": true, "vpp/interface/if1/address/from_dhcp/10.1.0.5/24": true, "vpp/interface/if1/address/static/10.1.0.6/24": false,
	} {
		if deps[1].Match(key) != want {
			t.Errorf("%s will do: %t", key, !want)
		}
	}
	if !deps[2].Match("vpp/interface/if1/address/alloc_ref/alloc:net1") {
		t.Error("a reference to the address will not do")
	}
}

func TestDHCPProxyConforms(t *testing.T) {
	v := func(text string) *l3.DHCPProxy { return testkit.Parse[*l3.DHCPProxy](t, text) }
	const one, two = `servers: { ip_address: "10.8.0.1" } `, `servers: { vrf_id: 5 ip_address: "10.8.0.2" } `
	onEach(t, handler.dhcpProxyDescriptor, conformance.Suite[*l3.DHCPProxy, struct{}]{
		Values: []scheduler.Desired[*l3.DHCPProxy]{
			{Value: v(`source_ip_address: "10.1.0.1" ` + one + two + one)},
			{Value: v(`source_ip_address: "10.1.0.1" rx_vrf_id: 5 ` + two)},
			{Value: v(`source_ip_address: "FD01:0::1" servers: { ip_address: "FD08:0::1" }`)},
		},
		Changes: []conformance.Change[*l3.DHCPProxy]{
			{Name: "source", From: v(`source_ip_address: "10.1.0.1" ` + one), To: v(`source_ip_address: "10.1.0.2" ` + one), How: conformance.Recreated},
			{Name: "servers", From: v(`source_ip_address: "10.1.0.1" ` + one), To: v(`source_ip_address: "10.1.0.1" ` + two), How: conformance.Recreated},
			{Name: "order", From: v(`source_ip_address: "10.1.0.1" ` + one + two), To: v(`source_ip_address: "10.1.0.1" ` + two + one), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*l3.DHCPProxy]{
			{Name: "nothing", Value: &l3.DHCPProxy{RxVrfId: invalidTable}, Fields: []string{"source_ip_address", "rx_vrf_id", "servers"}},
			{Name: "versions", Value: v(`source_ip_address: "10.1.0.1" servers: { ip_address: "fd00::1" } servers: { ip_address: "x" } servers: { ip_address: "0.0.0.0" }`),
				Fields: []string{"servers[0].ip_address", "servers[1].ip_address", "servers[2].ip_address"}},
		},
	})
}

func TestProxyARPInterfaceConforms(t *testing.T) {
	v := func(name string) scheduler.Desired[*l3.ProxyARP_Interface] {
		return scheduler.Desired[*l3.ProxyARP_Interface]{Key: "vpp/proxyarp/interface/" + name, Value: &l3.ProxyARP_Interface{Name: name}}
	}
	onEach(t, handler.proxyInterfaceDescriptor, conformance.Suite[*l3.ProxyARP_Interface, struct{}]{
		Values: []scheduler.Desired[*l3.ProxyARP_Interface]{v("if1"), v("if2")},
	})
}
