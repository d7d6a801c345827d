package olderctl

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the answers into the golden files")

// declared has one value of each model that a path below /dump shows, and two secrets. Each
// document is declared by itself: values of one transaction get their indexes in any order.
const declared = `
linuxConfig:
  interfaces:
    - {name: v1, type: VETH, enabled: true, phys_address: "02:00:00:00:01:01", ip_addresses: [10.1.0.1/24], veth: {peer_if_name: v2}}
    - {name: v2, type: VETH, enabled: true, phys_address: "02:00:00:00:01:02", veth: {peer_if_name: v1}}
  routes: [{outgoing_interface: v1, dst_network: 10.2.0.0/16, gw_addr: 10.1.0.2}]
  arpEntries: [{interface: v1, ip_address: 10.1.0.9, hw_address: "02:00:00:00:00:09"}]
---
vppConfig: {interfaces: [{name: loop1, type: SOFTWARE_LOOPBACK, enabled: true, phys_address: "02:00:00:00:02:01", ip_addresses: [10.3.0.1/24]}]}
---
vppConfig: {interfaces: [{name: mem1, type: MEMIF, enabled: true, phys_address: "02:00:00:00:02:02", memif: {id: 1, master: true, secret: topsecret, socket_filename: /run/none.sock}}]}
---
vppConfig: {interfaces: [{name: vx1, type: VXLAN_TUNNEL, enabled: true, vxlan: {src_address: 10.3.0.1, dst_address: 10.3.0.2, vni: 7}}]}
---
vppConfig: {interfaces: [{name: tap1, type: TAP, enabled: true, phys_address: "02:00:00:00:02:03", tap: {version: 2, host_if_name: keyplanetap}}]}
---
vppConfig: {interfaces: [{name: af1, type: AF_PACKET, enabled: true, phys_address: "02:00:00:00:02:04", afpacket: {host_if_name: v2}}]}
---
vppConfig:
  xconnectPairs: [{receive_interface: tap1, transmit_interface: af1}]
  abfs: [{index: 1, acl_name: ip1, attached_interfaces: [{input_interface: loop1, priority: 10}], forwarding_paths: [{next_hop_ip: 10.3.0.9, interface_name: loop1, weight: 1}]}]
  VRRPEntry_list: [{interface: loop1, vr_id: 4, priority: 100, interval: 100, ip_addresses: [10.3.0.1], enabled: true}]
  nat44Global: {forwarding: true}
  nat44Interfaces: [{name: mem1, nat_inside: true}]
  nat44Pools: [{name: p1, first_ip: 10.7.0.1, last_ip: 10.7.0.9}]
  dnat44s: [{label: web, st_mappings: [{external_ip: 10.7.0.1, external_port: 80, local_ips: [{local_ip: 10.3.0.9, local_port: 8080}], protocol: TCP}]}]
  puntTohosts: [{l3_protocol: IPV4, l4_protocol: UDP, port: 9000, socket_path: /run/none-punt.sock}]
  ipsecSpds: [{index: 1, interfaces: [{name: mem1}]}]
  ipsecSps: [{spd_index: 1, sa_index: 1, priority: 10, remote_addr_start: 10.8.0.1, remote_addr_stop: 10.8.0.9, local_addr_start: 10.9.0.1, local_addr_stop: 10.9.0.9, action: PROTECT}]
  bridgeDomains: [{name: bd1, flood: true, forward: true, learn: true, interfaces: [{name: vx1}]}]
  fibs: [{phys_address: "02:00:00:00:00:07", bridge_domain: bd1, outgoing_interface: vx1}]
  routes: [{dst_network: 10.4.0.0/16, next_hop_addr: 10.3.0.9, outgoing_interface: loop1}]
  arps: [{interface: loop1, ip_address: 10.3.0.9, phys_address: "02:00:00:00:00:08", static: true}]
  proxyArp: {interfaces: [{name: loop1}], ranges: [{first_ip_addr: 10.5.0.1, last_ip_addr: 10.5.0.9}]}
  ipscanNeighbor: {mode: IPV4, scan_interval: 5}
  acls:
    - {name: ip1, rules: [{action: PERMIT, ip_rule: {ip: {source_network: 10.6.0.0/16}}}]}
    - {name: mac1, rules: [{action: PERMIT, macip_rule: {source_address: 10.6.0.1, source_address_prefix: 32, source_mac_address: "02:00:00:00:00:0a", source_mac_address_mask: "ff:ff:ff:ff:ff:ff"}}]}
  ipsecSas: [{index: 1, spi: 1001, protocol: ESP, crypto_alg: AES_CBC_128, crypto_key: 4a506a794f574265564551694d653768, integ_alg: SHA1_96, integ_key: 4339314b55523947594d6d3547666b45764e6a58, enable_udp_encap: false}]
`

// kernelIndex is a number that the kernel chose: of an interface, or of a network namespace.
var kernelIndex = regexp.MustCompile(`("(?:(?:linux_if_|parent_|interface_)?index|Link|Dev|Ino)": )[0-9]+`)

// TestDumps compares each dump for older clients with its golden file: the shape, and that no
// secret is in it.
func TestDumps(t *testing.T) {
	p := start(t, nil)
	for document := range strings.SplitSeq(declared, "\n---\n") {
		p.ask("PUT", "/configuration", document)
	}
	// The AF_PACKET interface comes when the kernel has announced its link.
	var applied struct {
		Done    bool
		Missing []any
	}
	p.read("POST", "/scheduler/wait", `{"All": true, "Milliseconds": 60000}`, &applied)
	if !applied.Done {
		t.Fatalf("not applied: %v", applied.Missing)
	}
	for _, path := range []string{
		"linux/v2/interfaces", "linux/v2/routes", "linux/v2/arps",
		"vpp/v2/abf", "vpp/v2/acl/ip", "vpp/v2/acl/macip", "vpp/v2/interfaces", "vpp/v2/interfaces/loopback", "vpp/v2/interfaces/ethernet",
		"vpp/v2/interfaces/memif", "vpp/v2/interfaces/tap", "vpp/v2/interfaces/afpacket", "vpp/v2/interfaces/vxlan",
		"vpp/v2/nat/global", "vpp/v2/nat/dnat", "vpp/v2/nat/interfaces", "vpp/v2/nat/pools", "vpp/v2/bd", "vpp/v2/fib", "vpp/v2/xc", "vpp/v2/routes", "vpp/v2/arps",
		"vpp/v2/proxyarp/interfaces", "vpp/v2/proxyarp/ranges", "vpp/v2/ipscanneigh", "vpp/v2/vrrps", "vpp/v2/ipsec/spds", "vpp/v2/ipsec/sps", "vpp/v2/ipsec/sas", "vpp/v2/punt/sockets",
	} {
		got := string(p.ask("GET", "/dump/"+path, ""))
		if strings.HasPrefix(path, "linux") {
			got = kernelIndex.ReplaceAllString(got, "${1}0")
		}
		for _, secret := range []string{"topsecret", "4a506a79", "4339314b"} {
			if strings.Contains(got, secret) {
				t.Errorf("/dump/%s shows the secret %s", path, secret)
			}
		}
		file := filepath.Join("testdata", strings.ReplaceAll(path, "/", "-")+".json")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("/dump/%s (%v) is\n%s\nwant\n%s", path, err, got, want)
		}
	}
}
