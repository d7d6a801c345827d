package iface

import (
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// TestValidate names the fields that are wrong, all at once; none: the value is good. Either the
// handler or the limits of the model refuse a field.
func TestValidate(t *testing.T) {
	const (
		loop = `name: "a" type: SOFTWARE_LOOPBACK `
		tap  = `name: "a" type: TAP `
		gre  = `name: "a" type: GRE_TUNNEL gre { tunnel_type: L3 `
		zero = `\000`
	)
	long := strings.Repeat("n", 63)
	for _, c := range []struct{ value, invalid string }{
		{`name: "` + long + `" type: SOFTWARE_LOOPBACK`, ""},
		{`name: "` + long + `n" type: SOFTWARE_LOOPBACK`, "name"},
		{`name: "a` + zero + `b" type: SOFTWARE_LOOPBACK`, "name"},
		{`name: "a/b c:d" type: SOFTWARE_LOOPBACK`, ""},
		{`name: "a/vrf" type: SOFTWARE_LOOPBACK`, "name"},
		{`name: "vrf/interface/address" type: SOFTWARE_LOOPBACK`, "name"},
		{`name: "vrf" type: SOFTWARE_LOOPBACK`, ""},
		{`name: "unnumbered/a" type: SOFTWARE_LOOPBACK`, "name"},
		{`name: "a/interface" type: SOFTWARE_LOOPBACK`, ""},
		{`name: "a/interface" type: BOND_INTERFACE bond { mode: XOR }`, "name"},

		// types and links
		{`name: "a"`, "type"},
		{`name: "a" type: 99`, "type"},
		{`name: "a" type: TAP`, ""},
		{`name: "a" type: MEMIF`, "memif"},
		{`name: "a" type: TAP memif {}`, "memif"},
		{loop + `tap {}`, "tap"},
		{`name: "a" tap { rx_ring_size: 3 version: 7 }`, "type tap.version tap.rx_ring_size"},
		{`name: "a" vxlan { src_address: "x" dst_address: "10.0.0.1" vni: 16777216 }`, "type vxlan.src_address vxlan.vni"},
		{`name: "a" vxlan { src_address: "10.0.0.2" dst_address: "10.0.0.1" gpe {} }`, "type vxlan.gpe.protocol"},
		{`phys_address: "x" mtu: 4294967295 vrf: 4294967295 unnumbered {} ip_addresses: "y" set_dhcp_client: true rx_modes {}`,
			"name type ip_addresses set_dhcp_client unnumbered.interface_with_ip ip_addresses[0] rx_modes[0].mode phys_address and 1 more"},
		{loop + `vrf: 4294967295 rx_placements { queue: 1 } rx_placements { queue: 1 }`, "rx_placements[1].queue vrf"},

		// MAC addresses
		{loop + `phys_address: "02:00:00:00:00:01"`, ""},
		{loop + `phys_address: "02-00-00-00-00-01"`, ""},
		{loop + `phys_address: "02:00:00:00:00"`, "phys_address"},
		{loop + `phys_address: "02:00:00:00:00:01:02:03"`, "phys_address"},
		{loop + `phys_address: "01:00:5e:00:00:01"`, ""},
		{loop + `mtu: 65536`, ""},

		// addresses
		{loop + `ip_addresses: ["10.0.0.1/24", "10.0.0.2/24", "fd00::1/64", "fe80::5/128", "alloc:net", "224.0.0.1/24", "10.0.0.0/24"]`, ""},
		{loop + `ip_addresses: ["10.0.0.1", "fd00::1", "10.0.0.1/32"]`, ""},
		{loop + `ip_addresses: ["10.0.0.1", "10.0.0.0/24"]`, "ip_addresses[1]"},
		{loop + `ip_addresses: ["10.0.0.", "10.0.0.1/33", "x/24", ""]`, "ip_addresses[0] ip_addresses[1] ip_addresses[2] ip_addresses[3]"},
		{loop + `ip_addresses: ["10.0.0.1/24", "10.0.0.1/24", "10.0.0.9/25", "10.0.1.1/24", "10.0.1.9/32"]`, "ip_addresses[2] ip_addresses[4]"},
		{loop + `ip_addresses: ["fd00::1/64", "fd00::2/48", "fe80::5/64", "fd00:0::1/64"]`, "ip_addresses[1]"},
		{loop + `ip_addresses: ["fe80::5/128", "169.254.0.1/24", "fe80::6/128", "FE80:0::5/128", "169.254.0.2/24"]`, "ip_addresses[2]"},
		{loop + `ip_addresses: ["alloc:", "alloc:net/GW", "alloc:net/b"]`, "ip_addresses[0] ip_addresses[1] ip_addresses[2]"},
		{loop + `unnumbered { interface_with_ip: "b" }`, ""},
		{loop + `unnumbered { interface_with_ip: "b" } vrf: 7`, ""},
		{loop + `unnumbered { interface_with_ip: "a" }`, "unnumbered.interface_with_ip"},
		{loop + `unnumbered { interface_with_ip: "b" } set_dhcp_client: true`, "set_dhcp_client"},
		{loop + `set_dhcp_client: true ip_addresses: "10.0.0.1/24"`, ""},

		// DHCP clients need a MAC address
		{tap + `set_dhcp_client: true`, ""},
		{tap + `set_dhcp_client: true tap { enable_tunnel: true }`, "set_dhcp_client"},
		{tap + `tap { enable_tunnel: true }`, ""},
		{`name: "a" type: MEMIF set_dhcp_client: true memif {}`, ""},
		{`name: "a" type: MEMIF set_dhcp_client: true memif { mode: IP }`, "set_dhcp_client"},
		{`name: "a" type: IPSEC_TUNNEL set_dhcp_client: true ipsec {}`, "set_dhcp_client"},
		{`name: "a" type: IPIP_TUNNEL set_dhcp_client: true ipip { src_addr: "10.0.0.1" dst_addr: "10.0.0.2" }`, "set_dhcp_client"},
		{`name: "a" type: WIREGUARD_TUNNEL set_dhcp_client: true wireguard { private_key: "AAECAwQFBgcICQoLDA0ODw8ODQwLCgkIBwYFBAMCAQA=" src_addr: "10.0.0.1" }`, "set_dhcp_client"},
		{gre + `src_addr: "10.0.0.1" dst_addr: "10.0.0.2" } set_dhcp_client: true`, "set_dhcp_client"},
		{`name: "a" type: GRE_TUNNEL set_dhcp_client: true gre { tunnel_type: TEB src_addr: "10.0.0.1" dst_addr: "10.0.0.2" }`, ""},
		{`name: "a" type: GTPU_TUNNEL set_dhcp_client: true gtpu { src_addr: "10.0.0.1" dst_addr: "10.0.0.2" }`, "set_dhcp_client"},
		{`name: "a" type: VXLAN_TUNNEL set_dhcp_client: true vxlan { src_address: "10.0.0.1" dst_address: "10.0.0.2" }`, ""},
		{`name: "a" type: VXLAN_TUNNEL set_dhcp_client: true vxlan { src_address: "10.0.0.1" dst_address: "10.0.0.2" gpe { protocol: IP4 } }`, "set_dhcp_client"},
		{`name: "a" type: SUB_INTERFACE set_dhcp_client: true sub { parent_name: "p" sub_id: 1 }`, ""},

		// links of the host
		{tap + `tap { host_if_name: "exactly-15-byte" rx_ring_size: 32768 tx_ring_size: 1024 version: 1 }`, ""},
		{tap + `tap { host_if_name: "16-bytes-is-more" rx_ring_size: 65536 tx_ring_size: 1000 version: 3 }`, "tap.version tap.host_if_name tap.rx_ring_size tap.tx_ring_size"},
		{tap + `tap { host_if_name: "a/b" }`, "tap.host_if_name"},
		{tap + `tap { host_if_name: "a b" }`, "tap.host_if_name"},
		{tap + `tap { host_if_name: ".." }`, "tap.host_if_name"},
		{`name: "a" type: AF_PACKET afpacket { host_if_name: "a:b" }`, "afpacket.host_if_name"},
		{`name: "a" type: AF_PACKET afpacket {}`, "afpacket.host_if_name"},
		{`name: "a" type: AF_PACKET afpacket { linux_interface: "any logical name at all" }`, ""},
		{`name: "a" type: RDMA rdma { host_if_name: "16-bytes-is-more" rxq_num: 65536 }`, "rdma.host_if_name rdma.rxq_num"},

		// sub-interfaces, bonds, memifs
		{`name: "a" type: SUB_INTERFACE sub { parent_name: "p" sub_id: 4094 }`, ""},
		{`name: "a" type: SUB_INTERFACE sub {}`, "sub.parent_name sub.sub_id"},
		{`name: "a" type: SUB_INTERFACE sub { parent_name: "a" sub_id: 4096 tag_rw_option: 4 tag1: 4096 tag2: 4096 }`, "sub.parent_name sub.sub_id sub.tag_rw_option sub.tag1 sub.tag2"},
		{`name: "a" type: SUB_INTERFACE sub { parent_name: "p" sub_id: 1 tag_rw_option: 99 }`, "sub.tag_rw_option"},
		{`name: "a" type: BOND_INTERFACE bond { id: 4294967295 lb: 9 bonded_interfaces { name: "a" } }`, "bond.mode bond.lb bond.bonded_interfaces[0].name"},
		{`name: "a" type: BOND_INTERFACE bond { mode: XOR bonded_interfaces: [{ name: "b" }, { name: "c" is_passive: true }, { name: "b" }, { name: "c" }] }`, "bond.bonded_interfaces[3].name"},
		{`name: "a" type: MEMIF memif { id: 4294967295 ring_size: 32768 buffer_size: 65535 rx_queues: 255 tx_queues: 255 secret: "` + long[:23] + `" }`, ""},
		{`name: "a" type: MEMIF memif { mode: 7 ring_size: 100 buffer_size: 65536 rx_queues: 256 tx_queues: 256 secret: "` + long[:24] + `" socket_filename: "` + long + long + `" }`,
			"memif.mode memif.ring_size memif.buffer_size memif.socket_filename memif.secret memif.rx_queues memif.tx_queues"},
		{`name: "a" type: MEMIF memif { secret: "` + zero + `" socket_filename: "` + zero + `" }`, "memif.socket_filename memif.secret"},

		// tunnels
		{gre + `src_addr: "10.0.0.1" dst_addr: "10.0.0.2" session_id: 1023 }`, ""},
		{`name: "a" type: GRE_TUNNEL gre { tunnel_type: ERSPAN src_addr: "224.0.0.1" dst_addr: "fd00::1" session_id: 1024 }`, "gre.session_id gre.src_addr gre.dst_addr"},
		{gre + `src_addr: "10.0.0.1" dst_addr: "10.0.0.1" }`, "gre.dst_addr"},
		{`name: "a" type: IPIP_TUNNEL ipip { tunnel_mode: POINT_TO_MULTIPOINT src_addr: "10.0.0.1" }`, ""},
		{`name: "a" type: IPIP_TUNNEL ipip { src_addr: "10.0.0.1" }`, "ipip.dst_addr"},
		{`name: "a" type: IPIP_TUNNEL ipip { tunnel_mode: POINT_TO_MULTIPOINT src_addr: "ff02::1" }`, "ipip.src_addr"},
		{`name: "a" type: VXLAN_TUNNEL vxlan { src_address: "10.0.0.1" dst_address: "224.0.0.1" vni: 16777215 multicast: "m" }`, ""},
		{`name: "a" type: VXLAN_TUNNEL vxlan { src_address: "224.0.0.2" dst_address: "224.0.0.1" vni: 16777216 }`, "vxlan.src_address vxlan.multicast vxlan.vni"},
		{`name: "a" type: GTPU_TUNNEL gtpu { src_addr: "10.0.0.1" dst_addr: "10.0.0.2" multicast: "m" decap_next: 9 }`, "gtpu.decap_next"},
		{`name: "a" type: VXLAN_TUNNEL vxlan { src_address: "10.0.0.1" dst_address: "10.0.0.2" vni: 7 multicast: "m" }`, ""},
		{`name: "a" type: AF_PACKET afpacket { host_if_name: "16-bytes-is-more" linux_interface: "l" }`, ""},
		{`name: "a" type: WIREGUARD_TUNNEL wireguard { private_key: "` + long[:44] + `" port: 65536 src_addr: "224.0.0.1" }`, "wireguard.private_key wireguard.port wireguard.src_addr"},
		{`name: "vmxnet3-0/b/0/0" type: VMXNET3_INTERFACE vmx_net3 { rxq_size: 65 txq_size: 4160 }`, "vmx_net3.rxq_size vmx_net3.txq_size"},
		{`name: "eth0" type: VMXNET3_INTERFACE vmx_net3 {}`, "name"},
	} {
		h := newHandler(Options{}, nil)
		v, _ := normalize("", testkit.Parse[*interfaces.Interface](t, c.value))
		err := h.validate("", v)
		got := strings.Join(models.Fields(err), " ")
		if err != nil {
			if _, more, cut := strings.Cut(err.Error(), "\nand "); cut {
				got += " and " + more
			}
		}
		// The limits of the model refuse numbers; the handler need not refuse them, too.
		named, limited := models.Fields(err), models.Fields(limits.Check(v))
		want := strings.Join(slices.DeleteFunc(strings.Split(c.invalid, " "), func(field string) bool {
			return slices.Contains(limited, field) && !slices.Contains(named, field)
		}), " ")
		if got != want {
			t.Errorf("%s:\n%q is wrong, want %q: %v", c.value, got, want, err)
		}
	}
}

// TestErrorsTellNoSecrets has secrets that are wrong.
func TestErrorsTellNoSecrets(t *testing.T) {
	const secret = "topsecret-and-far-too-long"
	h := newHandler(Options{}, nil)
	for _, value := range []string{
		`name: "a" type: MEMIF memif { secret: "` + secret + `" }`, `name: "a" type: WIREGUARD_TUNNEL wireguard { private_key: "` + secret + `" }`,
	} {
		if err := h.validate("", testkit.Parse[*interfaces.Interface](t, value)); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: it says %v", value, err)
		}
	}
}
