package iface

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// TestMain gives a real VPP a network of its own.
func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// an index knows what stands, by name.
type links map[string]Meta

func (l links) Get(name string) (Meta, bool)   { m, ok := l[name]; return m, ok }
func (l links) All() map[string]Meta           { return l }
func (l links) Last(string) (uint32, bool)     { return 0, false }
func (l links) Names() map[uint32]string       { return NamesByIndex(l) }
func (l links) Leftovers() *leftovers.Registry { return &leftovers.Registry{} }
func (l links) Connected(netip.Prefix) bool    { return false }

// base and other are loopbacks that somebody else has made.
const (
	base  = Untagged + "loop0"
	other = Untagged + "loop1"
)

// nic is hardware.
const nic = "GigabitEthernet0/8/0"

// onVPP returns a handler for a VPP that has base and other, and table 5 of both IP
// versions.
func onVPP(t testing.TB, release string) (*handler, *simulated.VPP) {
	t.Helper()
	vpp := simulated.StartWith(t, vppsim.Options{Release: release, Hardware: []string{nic}, Workers: 2})
	c := vpp.Dial()
	index := links{}
	for _, name := range []string{base, other} {
		loopback := uint32(vpp.Loopback(c, ""))
		index[name] = Meta{Index: loopback, Parent: loopback}
	}
	for _, ipv6 := range []bool{false, true} {
		vpp.Ask(c, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 5, IsIP6: ipv6}}, &ip.IPTableAddDelReply{})
	}
	index[Untagged+"local0"] = Meta{}
	host := func(string) (string, bool, bool) { return "lo", false, true }
	return newHandler(Options{API: c, LinuxHost: host, RaiseLink: func(string) error { return nil }, HasLink: func(string) bool { return false }}, index), vpp
}

// onEach runs a suite on each release but some; with has to make the descriptor.
func onEach[V proto.Message, M any](t *testing.T, descriptor func(h *handler) scheduler.Descriptor[V, M], s conformance.Suite[V, M], but ...string) {
	for _, release := range simulated.Releases() {
		if slices.Contains(but, release) {
			continue
		}
		t.Run(release, func(t *testing.T) {
			s := s
			s.New = func(t *testing.T) scheduler.Descriptor[V, M] {
				h, _ := onVPP(t, release)
				return descriptor(h)
			}
			conformance.Run(t, s)
		})
	}
}

// up begins a value that is enabled.
const up = "enabled: true "

// A life is a kind of interface: what it is made as, and what then changes.
type life struct {
	name, value, another      string   // name defaults to "if1"
	updated, recreated, equal []string // what follows value
	invalid                   string
	fields                    []string
	device                    bool // it is on hardware, which no real VPP can be expected to have
}

func lives() map[kinds.Form]life {
	const memif, tunnel = `memif: { id: 3 master: true socket_filename: "/run/m.sock" `, `src_addr: "10.0.0.1" dst_addr: "10.0.0.2" `
	const key = `private_key: "AAECAwQFBgcICQoLDA0ODw8ODQwLCgkIBwYFBAMCAQA=" `
	const vtep = `src_address: "10.0.0.1" dst_address: "10.0.0.2" vni: 7`
	return map[kinds.Form]life{
		{Type: interfaces.Interface_SOFTWARE_LOOPBACK}: {
			value: `phys_address: "02:00:00:00:00:0a" mtu: 1500`, another: ``,
			updated: []string{`phys_address: "02:00:00:00:00:0b"`, `mtu: 1400`, `mtu: 65536`},
			equal:   []string{``, `phys_address: "02:00:00:00:00:0A" mtu: 1500`},
			invalid: `sub: {} phys_address: "x" ip_addresses: ["1", "10.0.0.1/24", "10.0.0.1/16", "alloc:x/GW"]`,
			fields:  []string{"sub", "phys_address", "ip_addresses[0]", "ip_addresses[2]", "ip_addresses[3]"},
		},
		{Type: interfaces.Interface_SUB_INTERFACE}: {
			value: `sub: { parent_name: "` + base + `" sub_id: 100 }`, another: `sub: { parent_name: "` + base + `" sub_id: 101 }`,
			updated: []string{
				`sub: { parent_name: "` + base + `" sub_id: 100 tag_rw_option: POP1 tag1: 7 }`,
				`sub: { parent_name: "` + base + `" sub_id: 100 tag_rw_option: PUSH1 push_dot1q: true tag1: 7 tag2: 8 }`,
				`sub: { parent_name: "` + base + `" sub_id: 100 tag_rw_option: TRANSLATE12 tag1: 7 tag2: 8 }`,
			},
			recreated: []string{`sub: { parent_name: "` + base + `" sub_id: 7 }`, `sub: { parent_name: "` + other + `" sub_id: 100 }`},
			equal:     []string{`mtu: 1400 sub: { parent_name: "` + base + `" sub_id: 100 push_dot1q: true tag1: 7 tag2: 8 }`},
			invalid:   `sub: { sub_id: 4096 tag_rw_option: POP2 tag1: 4096 tag2: 4096 }`,
			fields:    []string{"sub.parent_name", "sub.sub_id", "sub.tag_rw_option", "sub.tag1", "sub.tag2"},
		},
		{Type: interfaces.Interface_TAP}: {
			value: `tap: { version: 2 host_if_name: "lin1" rx_ring_size: 512 }`, another: ` `,
			updated:   []string{`mtu: 1400 phys_address: "02:00:00:00:00:0a" tap: { host_if_name: "lin1" }`},
			recreated: []string{`tap: { host_if_name: "lin2" }`, `tap: { host_if_name: "lin1" enable_gso: true }`, `tap: { host_if_name: "lin1" tx_ring_size: 1024 }`},
			equal:     []string{`tap: { host_if_name: "lin1" }`},
			invalid:   `tap: { version: 3 host_if_name: "1234567890123456" rx_ring_size: 1000 tx_ring_size: 65536 }`,
			fields:    []string{"tap.version", "tap.host_if_name", "tap.rx_ring_size", "tap.tx_ring_size"},
		},
		{Type: interfaces.Interface_MEMIF}: {
			value: `` + memif + `secret: "x" }`, another: `memif: { id: 4 socket_filename: "m2.sock" }`,
			updated:   []string{`mtu: 1400 ` + memif + `secret: "x" }`},
			recreated: []string{memif + `}`, memif + `secret: "x" ring_size: 512 }`, `memif: { id: 3 }`, memif + `secret: "x" mode: IP }`},
			equal:     []string{`` + memif + `secret: "x" ring_size: 1024 buffer_size: 2048 rx_queues: 1 tx_queues: 1 }`},
			invalid:   `memif: { mode: 7 ring_size: 1000 buffer_size: 65536 secret: "123456789012345678901234" socket_filename: "` + strings.Repeat("x", 108) + `" rx_queues: 256 tx_queues: 256 }`,
			fields:    []string{"memif.mode", "memif.ring_size", "memif.buffer_size", "memif.socket_filename", "memif.secret", "memif.rx_queues", "memif.tx_queues"},
		},
		{Type: interfaces.Interface_AF_PACKET}: {
			value:     `afpacket: { host_if_name: "lo" }`,
			updated:   []string{`mtu: 1400 afpacket: { host_if_name: "lo" }`},
			recreated: []string{`phys_address: "02:00:00:00:00:0a" afpacket: { host_if_name: "lo" }`, `afpacket: { linux_interface: "l" host_if_name: "ignored" }`},
			equal:     []string{`afpacket: { host_if_name: "lo" }`},
			invalid:   `afpacket: {}`, fields: []string{"afpacket.host_if_name"},
		},
		{Type: interfaces.Interface_VXLAN_TUNNEL}: {
			value:   `vxlan: { src_address: "10.0.0.1" dst_address: "10.0.0.2" vni: 7 }`,
			another: `vrf: 5 vxlan: { src_address: "FD00:0::1" dst_address: "ff02::2" vni: 7 multicast: "` + base + `" }`,
			updated: []string{`phys_address: "02:00:00:00:00:0a" vxlan: { src_address: "10.0.0.1" dst_address: "10.0.0.2" vni: 7 }`},
			recreated: []string{
				`vxlan: { src_address: "10.0.0.1" dst_address: "10.0.0.3" vni: 7 }`, `vxlan: { src_address: "10.0.0.1" dst_address: "10.0.0.2" vni: 8 }`,
				`vrf: 5 vxlan: { src_address: "10.0.0.1" dst_address: "10.0.0.2" vni: 7 }`,
			},
			equal:   []string{`mtu: 1400 vxlan: { src_address: "10.0.0.1" dst_address: "10.0.0.2" vni: 7 multicast: "ignored" }`},
			invalid: `vxlan: { src_address: "x" dst_address: "224.0.0.1" vni: 16777216 }`,
			fields:  []string{"vxlan.src_address", "vxlan.multicast", "vxlan.vni"},
		},
		{Type: interfaces.Interface_VXLAN_TUNNEL, GPE: true}: {
			value:   `vxlan: { ` + vtep + ` gpe: { protocol: IP4 decap_vrf_id: 5 } }`,
			another: `vrf: 5 vxlan: { src_address: "FD00:0::1" dst_address: "ff02::2" vni: 7 multicast: "` + base + `" gpe: { protocol: IP6 decap_vrf_id: 5 } }`,
			recreated: []string{
				`vxlan: { ` + vtep + ` gpe: { protocol: IP4 } }`, `vxlan: { ` + vtep + ` gpe: { protocol: ETHERNET } }`, `vxlan: { ` + vtep + ` }`,
				`vrf: 5 vxlan: { ` + vtep + ` gpe: { protocol: IP4 decap_vrf_id: 5 } }`,
			},
			equal:   []string{`mtu: 1400 phys_address: "02:00:00:00:00:0a" vxlan: { ` + vtep + ` gpe: { protocol: IP4 decap_vrf_id: 5 } }`},
			invalid: `vxlan: { src_address: "x" dst_address: "224.0.0.1" vni: 16777216 gpe: { decap_vrf_id: 5 } }`,
			fields:  []string{"vxlan.src_address", "vxlan.multicast", "vxlan.vni", "vxlan.gpe.protocol", "vxlan.gpe.decap_vrf_id"},
		},
		{Type: interfaces.Interface_GTPU_TUNNEL}: {
			value: `gtpu: { ` + tunnel + `teid: 7 decap_next: IP4 }`, another: `gtpu: { src_addr: "FD00:0::1" dst_addr: "ff02::2" multicast: "` + base + `" encap_vrf_id: 5 teid: 7 }`,
			updated:   []string{`mtu: 1400 gtpu: { ` + tunnel + `teid: 7 decap_next: IP4 }`},
			recreated: []string{`gtpu: { ` + tunnel + `teid: 8 decap_next: IP4 }`, `gtpu: { ` + tunnel + `teid: 7 }`, `gtpu: { ` + tunnel + `teid: 7 remote_teid: 8 decap_next: IP4 }`},
			equal:     []string{`gtpu: { ` + tunnel + `teid: 7 multicast: "ignored" remote_teid: 7 decap_next_node: 2 }`},
			invalid:   `gtpu: { src_addr: "10.0.0.1" dst_addr: "ff02::1" decap_next: 9 }`,
			fields:    []string{"gtpu.dst_addr", "gtpu.multicast", "gtpu.decap_next"},
		},
		{Type: interfaces.Interface_GRE_TUNNEL}: {
			value: `gre: { tunnel_type: L3 ` + tunnel + `}`, another: `gre: { tunnel_type: TEB src_addr: "FD00:0::1" dst_addr: "fd00::2" outer_fib_id: 5 }`,
			updated:   []string{`mtu: 1400 gre: { tunnel_type: L3 ` + tunnel + `}`},
			recreated: []string{`gre: { tunnel_type: TEB ` + tunnel + `}`, `gre: { tunnel_type: L3 outer_fib_id: 5 ` + tunnel + `}`},
			equal:     []string{`gre: { tunnel_type: L3 ` + tunnel + `}`},
			invalid:   `gre: { session_id: 1024 src_addr: "10.0.0.1" dst_addr: "10.0.0.1" }`,
			fields:    []string{"gre.tunnel_type", "gre.session_id", "gre.dst_addr"},
		},
		{Type: interfaces.Interface_IPIP_TUNNEL}: {
			value: `ipip: { ` + tunnel + `}`, another: `vrf: 5 ipip: { tunnel_mode: POINT_TO_MULTIPOINT src_addr: "fd00::1" }`,
			updated:   []string{`mtu: 1400 ipip: { ` + tunnel + `}`},
			recreated: []string{`vrf: 5 ipip: { ` + tunnel + `}`, `ipip: { src_addr: "10.0.0.1" dst_addr: "10.0.0.3" }`},
			equal:     []string{`ipip: { ` + tunnel + `}`},
			invalid:   `ipip: { tunnel_mode: 7 src_addr: "10.0.0.1" dst_addr: "fd00::1" }`, fields: []string{"ipip.tunnel_mode", "ipip.dst_addr"},
		},
		{Type: interfaces.Interface_IPSEC_TUNNEL}: {
			value: `ipsec: { local_spi: 7 remote_ip: "10.0.0.1" }`, another: `ipsec: { tunnel_mode: POINT_TO_MULTIPOINT }`,
			recreated: []string{`ipsec: { tunnel_mode: POINT_TO_MULTIPOINT }`},
			equal:     []string{`ipsec: {}`, `mtu: 1400 ipsec: { local_spi: 8 }`},
			invalid:   `ipsec: { tunnel_mode: 7 }`, fields: []string{"ipsec.tunnel_mode"},
		},
		{Type: interfaces.Interface_WIREGUARD_TUNNEL}: {
			value: `wireguard: { ` + key + `port: 51820 src_addr: "10.0.0.1" }`, another: `wireguard: { ` + key + `src_addr: "FD00:0::1" }`,
			recreated: []string{
				`wireguard: { ` + key + `port: 51821 src_addr: "10.0.0.1" }`, `wireguard: { ` + key + `port: 51820 src_addr: "10.0.0.2" }`,
				`wireguard: { private_key: "EAECAwQFBgcICQoLDA0ODw8ODQwLCgkIBwYFBAMCAQA=" port: 51820 src_addr: "10.0.0.1" }`,
			},
			equal:   []string{`mtu: 1400 wireguard: { ` + key + `port: 51820 src_addr: "10.0.0.1" }`},
			invalid: `wireguard: { private_key: "AAEC" port: 65536 }`, fields: []string{"wireguard.private_key", "wireguard.port", "wireguard.src_addr"},
		},
		{Type: interfaces.Interface_DPDK}: {
			device: true,
			name:   nic, value: `mtu: 1400`,
			updated: []string{`mtu: 1500`},
			equal:   []string{`phys_address: "02:00:00:00:00:0a"`},
			invalid: `rdma: {}`, fields: []string{"rdma"},
		},
		{Type: interfaces.Interface_RDMA}: {
			device: true,
			value:  `rdma: { host_if_name: "lo" }`, another: `rdma: { host_if_name: "lo" mode: DV }`,
			updated: []string{`mtu: 1400 phys_address: "02:00:00:00:00:0a" rdma: { host_if_name: "lo" }`},
			recreated: []string{
				`rdma: { host_if_name: "lo" mode: IBV }`, `rdma: { host_if_name: "lo" rxq_num: 2 }`, `rdma: { host_if_name: "lo" rxq_size: 512 }`, `rdma: { host_if_name: "lo" txq_size: 512 }`,
			},
			equal:   []string{`rdma: { host_if_name: "lo" rxq_num: 1 rxq_size: 1024 txq_size: 1024 }`},
			invalid: `rdma: { mode: 7 rxq_num: 65536 rxq_size: 128 txq_size: 1000 }`,
			fields:  []string{"rdma.host_if_name", "rdma.mode", "rdma.rxq_num", "rdma.rxq_size", "rdma.txq_size"},
		},
		{Type: interfaces.Interface_VMXNET3_INTERFACE}: {
			device: true,
			name:   "vmxnet3-0/b/0/0", value: `vmx_net3: { enable_elog: true }`,
			updated:   []string{`mtu: 1400 phys_address: "02:00:00:00:00:0a" vmx_net3: {}`},
			recreated: []string{`vmx_net3: { rxq_size: 512 }`, `vmx_net3: { txq_size: 128 }`},
			equal:     []string{`vmx_net3: { rxq_size: 1024 txq_size: 1024 }`},
			invalid:   `vmx_net3: { rxq_size: 100 txq_size: 8192 }`, fields: []string{"vmx_net3.rxq_size", "vmx_net3.txq_size"},
		},
		{Type: interfaces.Interface_BOND_INTERFACE}: {
			value: `phys_address: "02:00:00:00:00:0a" bond: { id: 5 mode: XOR lb: L34 }`, another: `bond: { id: 6 mode: ROUND_ROBIN }`,
			updated: []string{`mtu: 1400 bond: { id: 5 mode: XOR lb: L34 }`},
			recreated: []string{
				`phys_address: "02:00:00:00:00:0b" bond: { id: 5 mode: XOR lb: L34 }`, `bond: { id: 5 mode: XOR lb: L2 }`,
				`bond: { id: 5 mode: ROUND_ROBIN }`, `bond: { id: 7 mode: XOR lb: L34 }`,
			},
			equal:   []string{`bond: { id: 5 mode: XOR lb: L34 }`},
			invalid: `bond: { lb: 77 bonded_interfaces: {} bonded_interfaces: { name: "a" } bonded_interfaces: { name: "a" is_passive: true } }`,
			fields:  []string{"bond.mode", "bond.lb", "bond.bonded_interfaces[0].name", "bond.bonded_interfaces[2].name"},
		},
	}
}

// TestKindsConform has each type of interface pass the suite of descriptors, on each release.
func TestKindsConform(t *testing.T) {
	lives := lives()
	for kind := range kinds.All() {
		t.Run(kind.String(), func(t *testing.T) {
			l, tried := lives[kind]
			if !tried {
				t.Fatal("it is tried nowhere: give it a line in lives")
			}
			l.need(t, kind)
			onEach(t, (*handler).descriptor, l.suite(t, kind))
		})
	}
}

func (l life) suite(t *testing.T, kind kinds.Form) conformance.Suite[*interfaces.Interface, Meta] {
	v := func(name, more string) *interfaces.Interface {
		return testkit.Parse[*interfaces.Interface](t, fmt.Sprintf("name: %q type: %s %s", name, kind.Type, more))
	}
	name := cmp.Or(l.name, "if1")
	another := v("if2", l.another)
	if l.another == "" {
		another = testkit.Parse[*interfaces.Interface](t, `name: "if2" type: SOFTWARE_LOOPBACK`)
	}
	s := conformance.Suite[*interfaces.Interface, Meta]{
		Values: []scheduler.Desired[*interfaces.Interface]{{Value: v(name, up+l.value)}, {Value: another}},
		Invalid: []conformance.Invalid[*interfaces.Interface]{
			{Name: "all at once", Value: v(name, l.invalid), Fields: l.fields},
			{Name: "no link, no name", Value: v(strings.Repeat("x", 64), `unnumbered: {} ip_addresses: "10.0.0.1/24"`), Fields: append(l.missing(kind), "name", "unnumbered.interface_with_ip", "ip_addresses")},
			{Name: "no type", Value: &interfaces.Interface{Vrf: noVRF}, Fields: []string{"name", "type", "vrf"}},
			{Name: "a type that is none", Value: &interfaces.Interface{Name: "if1", Type: 99}, Fields: []string{"type"}},
		},
	}
	add := func(how conformance.How, all []string) {
		for _, to := range all {
			s.Changes = append(s.Changes, conformance.Change[*interfaces.Interface]{Name: to, From: v(name, up+l.value), To: v(name, up+to), How: how})
		}
	}
	s.Changes = append(s.Changes, conformance.Change[*interfaces.Interface]{Name: "down", From: v(name, up+l.value), To: v(name, l.value), How: conformance.Updated})
	add(conformance.Updated, l.updated)
	add(conformance.Recreated, l.recreated)
	add(conformance.Unchanged, l.equal)
	if len(l.recreated) == 0 { // it cannot but become another type
		s.Changes = append(s.Changes, conformance.Change[*interfaces.Interface]{
			Name: "type", From: v(name, l.value), To: testkit.Parse[*interfaces.Interface](t, fmt.Sprintf("name: %q type: MEMIF memif: { id: 9 }", name)), How: conformance.Recreated,
		})
	}
	return s
}

// need skips the test if VPP is a real one that cannot make interfaces of this kind.
func (l life) need(t *testing.T, kind kinds.Form) {
	t.Helper()
	lacks := l.lacks(t, kind)
	testkit.Need(t, lacks+", or a simulated VPP", lacks == "")
}

// lacks tells what a real VPP lacks for interfaces of this kind: hardware, a plugin or vhost-net. It
// is empty if one can be made.
func (l life) lacks(t *testing.T, kind kinds.Form) string {
	t.Helper()
	switch {
	case simulated.Newest() != simulated.Real:
		return ""
	case l.device:
		return "hardware"
	case kind.Type == interfaces.Interface_TAP && !simulated.HasTAPs():
		return "/dev/vhost-net"
	}
	h, vpp := onVPP(t, simulated.Real)
	defer vpp.Kill() // it has the socket of a memif, which the test needs
	_, err := h.create(t.Context(), "", l.suite(t, kind).Values[0].Value)
	if missing, ok := errors.AsType[*conn.Missing](err); ok {
		return "a VPP with the plugin that serves " + missing.Message
	}
	return "" // the test judges any other error
}

// missing is the link, if there is to be one.
func (l life) missing(kind kinds.Form) []string {
	if kind.Type == interfaces.Interface_TAP { // a TAP without link has all defaults
		return nil
	}
	if link := kinds.All()[kind].Link; link != "" {
		return []string{link}
	}
	return nil
}

// an empty value under a key.
func empty(key string) scheduler.Desired[*emptypb.Empty] {
	return scheduler.Desired[*emptypb.Empty]{Key: key, Value: &emptypb.Empty{}}
}

func TestAddressConforms(t *testing.T) {
	a := func(name, addr string) scheduler.Desired[*emptypb.Empty] {
		return empty(keys.Address{Interface: name, Source: keys.Static, Addr: addr}.Key())
	}
	onEach(t, (*handler).addressDescriptor, conformance.Suite[*emptypb.Empty, struct{}]{
		Values: []scheduler.Desired[*emptypb.Empty]{a(base, "10.0.0.1/24"), a(base, "10.0.0.2/24"), a(other, "fd00::1/64"), a(other, "fe80::1/128")},
		Invalid: []conformance.Invalid[*emptypb.Empty]{
			{Name: "no interface", Key: a("", "10.0.0.1/24").Key, Value: &emptypb.Empty{}},
			{Name: "link-local", Key: a(base, "fe80::1/64").Key, Value: &emptypb.Empty{}, Fields: []string{"ip_addresses"}},
		},
	})
}

func TestMembershipInVRFConforms(t *testing.T) {
	onEach(t, (*handler).vrfDescriptor, conformance.Suite[*emptypb.Empty, struct{}]{
		Values: []scheduler.Desired[*emptypb.Empty]{
			empty(keys.VRF{Interface: base, ID: 5, IPv4: true, IPv6: true}.Key()), empty(keys.VRF{Interface: other, From: base}.Key()),
		},
	})
}

// TestInheritedVRF has the lender in a VRF with IPv6 alone.
func TestInheritedVRF(t *testing.T) {
	h, vpp := onVPP(t, simulated.Newest())
	d := h.vrfDescriptor()
	for _, v := range []keys.VRF{{Interface: base, ID: 5, IPv6: true}, {Interface: other, From: base}} {
		if _, err := d.Create(t.Context(), v.Key(), &emptypb.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	for ipv6, want := range map[bool]uint32{false: 0, true: 5} {
		var table vppif.SwInterfaceGetTableReply
		vpp.Ask(vpp.Dial(), &vppif.SwInterfaceGetTable{SwIfIndex: h.index.(links)[other].SwIfIndex(), IsIPv6: ipv6}, &table)
		if table.VrfID != want {
			t.Errorf("IPv6 %t: it is in table %d, want %d", ipv6, table.VrfID, want)
		}
	}
}

// TestBorrowerThatDidNotEnter has VPP refuse the tables of the lender, or end and come back with
// new interfaces: Retrieve must not report that the borrower is in the VRF.
func TestBorrowerThatDidNotEnter(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, h *handler, vpp *simulated.VPP, key string){
		"refused": func(t *testing.T, h *handler, vpp *simulated.VPP, key string) {
			testkit.Need(t, "a simulated VPP, which can be told to refuse", vpp.Sim != nil)
			vpp.Sim.Fail("sw_interface_set_table", vppsim.Fault{Retval: -1})
			if h.enterVRF(t.Context(), key) == nil {
				t.Error("it was not refused")
			}
		},
		"in an earlier VPP": func(t *testing.T, h *handler, vpp *simulated.VPP, key string) {
			if err := h.enterVRF(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			vpp.Ask(vpp.Dial(), &vppif.SwInterfaceSetTable{SwIfIndex: h.index.(links)[other].SwIfIndex(), VrfID: 0}, &vppif.SwInterfaceSetTableReply{})
			h.forgetEntered(other, "") // as create does
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, vpp := onVPP(t, simulated.Newest())
			if err := h.enterVRF(t.Context(), keys.VRF{Interface: base, ID: 5, IPv4: true}.Key()); err != nil {
				t.Fatal(err)
			}
			key := keys.VRF{Interface: other, From: base}.Key()
			leave(t, h, vpp, key)
			for f, err := range conformance.Taken(h.retrieveVRFs(t.Context(), []scheduler.Desired[*emptypb.Empty]{empty(key)})) {
				if err != nil || f.Key == key {
					t.Errorf("Retrieve finds %s, %v", f.Key, err)
				}
			}
		})
	}
}

func TestUnnumberedConforms(t *testing.T) {
	u := func(borrower, lender string) scheduler.Desired[*interfaces.Interface_Unnumbered] {
		return scheduler.Desired[*interfaces.Interface_Unnumbered]{Key: keys.Interface(borrower).Unnumbered(), Value: &interfaces.Interface_Unnumbered{InterfaceWithIp: lender}}
	}
	onEach(t, (*handler).unnumberedDescriptor, conformance.Suite[*interfaces.Interface_Unnumbered, struct{}]{
		Values: []scheduler.Desired[*interfaces.Interface_Unnumbered]{u(base, other), u(other, base)},
		Changes: []conformance.Change[*interfaces.Interface_Unnumbered]{
			{Name: "lender", Key: u(base, other).Key, From: u(base, other).Value, To: u(base, Untagged+"local0").Value, How: conformance.Updated},
		},
	})
}

func TestBondMemberConforms(t *testing.T) {
	m := func(name, more string) scheduler.Desired[*interfaces.BondLink_BondedInterface] {
		return scheduler.Desired[*interfaces.BondLink_BondedInterface]{
			Key: keys.BondMember("bond1", name), Value: testkit.Parse[*interfaces.BondLink_BondedInterface](t, fmt.Sprintf("name: %q %s", name, more)),
		}
	}
	onEach(t, func(h *handler) scheduler.Descriptor[*interfaces.BondLink_BondedInterface, struct{}] {
		v := testkit.Parse[*interfaces.Interface](t, `name: "bond1" type: BOND_INTERFACE bond: { mode: XOR }`)
		meta, err := h.create(t.Context(), "", v)
		if err != nil {
			t.Fatal(err)
		}
		h.index.(links)["bond1"] = meta
		return h.memberDescriptor()
	}, conformance.Suite[*interfaces.BondLink_BondedInterface, struct{}]{
		Values: []scheduler.Desired[*interfaces.BondLink_BondedInterface]{m(base, `is_passive: true`), m(other, ``)},
		Changes: []conformance.Change[*interfaces.BondLink_BondedInterface]{
			{Name: "passive", Key: m(base, "").Key, From: m(base, "").Value, To: m(base, "is_passive: true").Value, How: conformance.Recreated},
		},
	})
}
