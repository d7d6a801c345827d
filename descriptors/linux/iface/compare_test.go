package iface

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

func TestValidate(t *testing.T) {
	const ok = `name: "a" type: VETH veth { peer_if_name: "z" } `
	tests := []struct{ value, invalid string }{
		{ok, ""},
		{ok + `ip_addresses: ["10.0.0.1/24", "fd00::1/64", "alloc:net", "alloc:net/a"] mtu: 9216 phys_address: "02:fe:00:00:00:01"`, ""},
		{`name: "lo1" type: LOOPBACK`, ""},
		{`name: "any logical name" type: LOOPBACK host_if_name: "lo"`, ""},
		{`name: "t" type: TAP_TO_VPP tap { vpp_tap_if_name: "x" }`, ""},
		{`name: "e" type: EXISTING link_only: true ip_addresses: "10.0.0.1/24"`, ""},
		{`name: "v" type: VRF_DEVICE vrf_dev { routing_table: 1 }`, ""},
		{`name: "d" type: DUMMY vrf_master_interface: "v"`, ""},

		{``, "name type"},
		{`name: "a"`, "type"},
		{`name: "a" type: 17`, "type"},
		{`name: "exactly-15-byte" type: DUMMY`, ""},
		{`name: "16-bytes-is-more" type: DUMMY`, "name"},
		{`name: "16-bytes-is-more" type: DUMMY host_if_name: "short"`, ""},
		{`name: "a" type: DUMMY host_if_name: "16-bytes-is-more"`, "host_if_name"},
		{`name: "a" type: DUMMY host_if_name: "a/b"`, "host_if_name"},
		{`name: "a" type: DUMMY host_if_name: "a b"`, "host_if_name"},
		{`name: "a/b" type: DUMMY`, "name"},
		{`name: "a" type: LOOPBACK host_if_name: "lo1"`, ""},
		{`name: "a" type: LOOPBACK host_if_name: "16-bytes-is-more"`, "host_if_name"},
		{`name: "` + strings.Repeat("n", 250) + `" type: DUMMY host_if_name: "d"`, "name"},
		{ok + `ip_addresses: ["10.0.0.1", "fd00::1", "10.0.0.1/32"] mtu: 65536`, ""},
		{ok + `ip_addresses: ["10.0.0.1%eth0", "x", "10.0.0.1/33", "0.0.0.0/8", "224.0.0.1/4", "::ffff:1.2.3.4/120"]`,
			"ip_addresses[0] ip_addresses[1] ip_addresses[2] ip_addresses[3] ip_addresses[4] ip_addresses[5]"},
		{ok + `ip_addresses: ["10.0.0.1/24", "10.0.0.1/24", "fd00::1/64", "fd00:0::1/64"]`, ""},
		{ok + `ip_addresses: ["alloc:", "alloc:net/GW", "alloc:net/other"]`, "ip_addresses[0] ip_addresses[1] ip_addresses[2]"},
		{`name: "e" type: EXISTING link_only: true ip_addresses: "alloc:net"`, "ip_addresses[0]"},
		{ok + `phys_address: "nonsense"`, "phys_address"},
		{ok + `phys_address: "03:00:00:00:00:01"`, "phys_address"},
		{ok + `phys_address: "00:00:00:00:00:00"`, "phys_address"},
		{ok + `phys_address: "02:00:00:00:00:01:02:03"`, "phys_address"},
		{ok + `mtu: 1279 ip_addresses: "10.0.0.1/24"`, ""},
		{ok + `mtu: 1000`, ""},
		{ok + `mtu: 1000 ip_addresses: "fd00::1/64"`, "mtu"},
		{ok + `namespace { type: NSID }`, "namespace.reference"},
		{ok + `namespace { reference: "red" }`, "namespace.type"},
		{`name: "e" type: EXISTING namespace { type: NSID reference: "red" }`, "namespace"},
		{`name: "a" type: VETH`, "veth.peer_if_name"},
		{`name: "a" type: VETH veth { peer_if_name: "a" }`, "veth.peer_if_name"},
		{`name: "a" type: VETH veth { peer_if_name: "z" rx_checksum_offloading: 7 tx_checksum_offloading: 8 }`,
			"veth.rx_checksum_offloading veth.tx_checksum_offloading"},
		{`name: "a" type: DUMMY veth { peer_if_name: "z" }`, "veth"},
		{`name: "a" type: VETH tap { vpp_tap_if_name: "x" }`, "tap veth.peer_if_name"},
		{`name: "a" type: LOOPBACK vrf_dev { routing_table: 1 }`, "vrf_dev"},
		{`name: "t" type: TAP_TO_VPP`, "tap.vpp_tap_if_name"},
		{`name: "v" type: VRF_DEVICE`, "vrf_dev.routing_table"},
		{`name: "v" type: VRF_DEVICE vrf_dev { routing_table: 253 }`, "vrf_dev.routing_table"},
		{`name: "v" type: VRF_DEVICE vrf_dev { routing_table: 254 }`, "vrf_dev.routing_table"},
		{`name: "v" type: VRF_DEVICE vrf_dev { routing_table: 255 }`, "vrf_dev.routing_table"},
		{`name: "v" type: VRF_DEVICE vrf_dev { routing_table: 252 } mtu: 1280`, ""},
		{`name: "v" type: VRF_DEVICE vrf_dev { routing_table: 256 } mtu: 65575`, ""},
		{`name: "v" type: VRF_DEVICE vrf_dev { routing_table: 256 } mtu: 1279`, "mtu"},
		{`name: "v" type: VRF_DEVICE vrf_dev { routing_table: 256 } mtu: 65576`, "mtu"},
		{`name: "v" type: VRF_DEVICE vrf_dev { routing_table: 1 } phys_address: "02:00:00:00:00:01" vrf_master_interface: "w"`,
			"phys_address vrf_master_interface"},
		{`name: "d" type: DUMMY vrf_master_interface: "d"`, "vrf_master_interface"},
		{`name: "bad name" type: VETH ip_addresses: "x"`, "name ip_addresses[0] veth.peer_if_name"},
	}
	h := &handler{Options: Options{Label: "test"}, marks: newMarks(nil, nil)}
	for _, tt := range tests {
		v, _ := normalize("", testkit.Parse[*value](t, tt.value))
		err := h.validate("", v)
		if got := strings.Join(models.Fields(err), " "); got != tt.invalid {
			t.Errorf("%s\ninvalid are %q, want %q: %v", tt.value, got, tt.invalid, err)
		}
	}
}

func TestEquivalentAndRecreate(t *testing.T) {
	const veth = `name: "a" type: VETH veth { peer_if_name: "z" } `
	const lo, vrf, existing = `name: "l" type: LOOPBACK `, `name: "v" type: VRF_DEVICE vrf_dev { routing_table: 1 } `, `name: "e" type: EXISTING `
	tests := []struct {
		old, new string
		want     string // same, update, recreate
	}{
		{veth, veth, "same"},
		{veth + `mtu: 1500 host_if_name: "a"`, veth, "same"},
		{veth + `ip_addresses: "10.0.0.1/24"`, veth, "same"},
		{veth + `phys_address: "02:fe:00:00:00:0a"`, veth + `phys_address: "02:FE:00:00:00:0A"`, "same"},
		{veth + `phys_address: "02:fe:00:00:00:0a"`, veth + `phys_address: "02-fe-00-00-00-0a"`, "same"},
		{veth + `phys_address: "02:fe:00:00:00:0a"`, veth + `phys_address: "02fe.0000.000a"`, "same"},
		{veth + `phys_address: "02:fe:00:00:00:0b"`, veth + `phys_address: "02fe.0000.000a"`, "update"},
		{veth + `phys_address: "02:fe:00:00:00:0a"`, veth, "same"},
		{veth, veth + `phys_address: "02:fe:00:00:00:0a"`, "update"},
		{veth + `link_only: true phys_address: "02:fe:00:00:00:0a"`, veth + `link_only: true phys_address: "02:fe:00:00:00:0b"`, "same"},
		{veth + `namespace {}`, veth, "same"},
		{veth + `mtu: 9000`, veth, "update"},
		{veth + `enabled: true`, veth, "update"},
		{veth + `host_if_name: "b"`, veth, "update"},
		{veth + `vrf_master_interface: "v"`, veth, "same"},
		{`name: "a" type: VETH veth { peer_if_name: "z" rx_checksum_offloading: CHKSM_OFFLOAD_ENABLED }`, veth, "same"},
		{`name: "a" type: VETH veth { peer_if_name: "z" tx_checksum_offloading: CHKSM_OFFLOAD_DISABLED }`, veth, "update"},
		{`name: "a" type: VETH veth { peer_if_name: "y" }`, veth, "recreate"},
		{veth + `namespace { type: NSID reference: "red" }`, veth, "recreate"},
		{veth + `link_only: true`, veth, "recreate"},
		{`name: "a" type: DUMMY`, veth, "recreate"},
		{`name: "t" type: TAP_TO_VPP tap { vpp_tap_if_name: "x" }`, `name: "t" type: TAP_TO_VPP tap { vpp_tap_if_name: "y" }`, "recreate"},
		{lo + `mtu: 65536 host_if_name: "lo"`, lo, "same"},
		{vrf + `mtu: 65575`, vrf, "same"},
		{vrf + `mtu: 65536`, vrf, "same"},
		{`name: "v" type: VRF_DEVICE vrf_dev { routing_table: 2 }`, vrf, "recreate"},
		{existing + `mtu: 9000 enabled: true phys_address: "02:fe:00:00:00:0a"`, existing, "same"},
		{existing + `host_if_name: "eth0"`, existing, "recreate"},
	}
	for _, tt := range tests {
		old, new := testkit.Parse[*value](t, tt.old), testkit.Parse[*value](t, tt.new)
		got := "update"
		if recreate("", old, new, Meta{}) {
			got = "recreate"
		}
		if equivalent("", old, new) {
			got = "same"
		}
		if got != tt.want {
			t.Errorf("%s\n%s\n%s, want %s", tt.old, tt.new, got, tt.want)
		}
	}
}

func TestDependenciesAndDerived(t *testing.T) {
	tests := []struct {
		value string
		want  []string
	}{
		{`name: "a" type: VETH enabled: true veth { peer_if_name: "z" } namespace { type: MICROSERVICE reference: "m" } ip_addresses: ["10.0.0.1/24", "alloc:net"]`, []string{
			"needs veth-peer-exists config/linux/interfaces/v2/interface/z",
			"needs microservice-available linux/microservice/m",
			"derives linux/interface/state/a/UP",
			"derives linux/interface/a/address/static/10.0.0.1/24",
			"derives linux/interface/a/address/alloc_ref/alloc:net",
			"alloc_ref needs alloc:net config/netalloc/v1/ip/network/net/interface/a",
		}},
		{`name: "d" type: DUMMY namespace { type: NSID reference: "red" }`, []string{
			"needs namespace-exists linux/netns/red",
			"derives linux/interface/state/d/DOWN",
		}},
		{`name: "t" type: TAP_TO_VPP tap { vpp_tap_if_name: "x" } link_only: true ip_addresses: "10.0.0.1/24"`, []string{
			"needs vpp-tap-interface-exists config/vpp/v2/interfaces/x",
			"derives linux/interface/state/t/DOWN",
		}},
		{`name: "e" type: EXISTING host_if_name: "eth0" link_only: true ip_addresses: "10.0.0.1/24" vrf_master_interface: "v"`, []string{
			"needs host-interface-exists linux/interface/host-name/eth0",
			"derives linux/interface/e/vrf/v",
			"v needs vrf-device-is-created config/linux/interfaces/v2/interface/v",
			"v needs inserted-into-vrf-externally linux/interface/host-name/eth0/vrf-host-name/",
			"v derives linux/interface/state/e/DOWN",
			"derives linux/interface/e/address/existing/10.0.0.1/24",
			"existing needs interface-assigned-to-vrf linux/interface/e/vrf/v",
			"existing needs address-assigned-to-interface linux/interface/host-name/eth0/address/10.0.0.1/24",
		}},
		{`name: "e" type: EXISTING link_only: true ip_addresses: "FD00:0::1/64"`, []string{
			"needs host-interface-exists linux/interface/host-name/e",
			"derives linux/interface/state/e/DOWN",
			"derives linux/interface/e/address/existing/FD00:0::1/64",
			"existing needs address-assigned-to-interface linux/interface/host-name/e/address/fd00::1/64",
		}},
	}
	h := handler{Options: Options{Spaces: netns.New(netns.Options{})}, marks: newMarks(nil, nil)}
	for _, tt := range tests {
		v := testkit.Parse[*value](t, tt.value)
		var got []string
		for _, d := range h.dependencies("", v) {
			got = append(got, fmt.Sprint("needs ", d.Label, " ", d.Key))
		}
		for _, kv := range derived("", v) {
			got = append(got, "derives "+kv.Key)
			switch {
			case strings.Contains(kv.Key, "/vrf/"):
				for _, d := range vrfDependencies(kv.Key, kv.Value.(*interfaces.Interface)) {
					got = append(got, fmt.Sprint("v needs ", d.Label, " ", d.Key, strings.Join(d.Prefixes, " ")))
				}
				for _, part := range derivedOfVRF(kv.Key, kv.Value.(*interfaces.Interface)) {
					got = append(got, "v derives "+part.Key)
				}
			case strings.Contains(kv.Key, "/address/"):
				for _, d := range addressDependencies(kv.Key, kv.Value.(*interfaces.Interface)) {
					got = append(got, fmt.Sprint(strings.Split(kv.Key, "/")[4], " needs ", d.Label, " ", d.Key))
				}
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s\ngot\n%s\nwant\n%s", tt.value, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

// A plan prints the fields of each part. Those of the whole interface would look like changes of it.
func TestPartsHaveNoOtherFields(t *testing.T) {
	v := testkit.Parse[*value](t, `name: "a" type: DUMMY host_if_name: "eth0" enabled: true mtu: 1400 ip_addresses: "10.0.0.1/24" vrf_master_interface: "v"`)
	var got []string
	for _, kv := range derived("", v) {
		text, err := models.Text(kv.Value, false)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(kv.Key+" "+text))
	}
	want := []string{
		`linux/interface/a/vrf/v enabled:true vrf_master_interface:"v"`,
		`linux/interface/a/address/static/10.0.0.1/24 ip_addresses:"10.0.0.1/24" vrf_master_interface:"v"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTemporaryNamesFit(t *testing.T) {
	for _, name := range []string{"a", strings.Repeat("long", 60), "veth1"} {
		if temp := tempName(name); len(temp) > 15 || !strings.HasPrefix(temp, "veth-") {
			t.Errorf("%s gets %s", name, temp)
		}
	}
	if got := tempName("a"); got != "veth-3826002220" { // FNV-1a of "a", as in its authors' tables
		t.Errorf("a gets %s", got)
	}
}

// A list that names one address 100,000 times makes one value of it.
func TestAddressIsDerivedOnce(t *testing.T) {
	v := &interfaces.Interface{Name: "if1", IpAddresses: slices.Repeat([]string{"10.0.0.1/24"}, 100_000)}
	if got := len(derived("", v)); got != 2 {
		t.Errorf("%d values are derived, want the state and one address", got)
	}
}

// Clients of vpp-agent 3.5 read metadata by its names in JSON.
func TestNamesOfMetadata(t *testing.T) {
	text, err := json.Marshal(Meta{Index: 3, HostName: "h", TAP: "t", VRF: "v", Table: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"LinuxIfIndex":3`, `"HostIfName":"h"`, `"VPPTapName":"t"`, `"VrfMasterIf":"v"`, `"VrfDevRT":5`, `"Namespace":null`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}
