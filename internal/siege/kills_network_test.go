package siege

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit/readme"
	"github.com/keyplane/keyplane/models"
)

// A mixed configuration has values of all models. Each key has one or several values, of which
// one is declared at a time.
type mixed map[string][]string

// mixedREADMEs are where the values of a mixed configuration are from. Those of the same name
// describe the same interface, and become values of one key.
var mixedREADMEs = []string{
	"netalloc/README.md",
	"linux/README.md", "linux/iface/README.md", "linux/l3/README.md", "linux/iptables/README.md", "linux/microservice/README.md",
	"vpp/iface/README.md", "vpp/l2/README.md", "vpp/acl/README.md", "vpp/abf/README.md", "vpp/l3/README.md", "vpp/stn/README.md",
	"vpp/dns/README.md", "vpp/ipfix/README.md", "vpp/ipsec/README.md", "vpp/srv6/README.md", "vpp/nat/README.md",
	"vpp/wireguard/README.md", "vpp/punt/README.md",
}

// moreMixed are values that no README shows, that wait, or that are invalid.
var moreMixed = []item{
	// The kernel's side of a TAP of VPP, and what stands on it.
	{linux("tap1-host"), `{"name":"tap1-host","type":"TAP_TO_VPP","host_if_name":"tap1-host","enabled":true,"ip_addresses":["10.200.0.2/24"],"tap":{"vpp_tap_if_name":"tap1"}}`},
	{"config/linux/l3/v2/route/10.201.0.0/16/tap1-host", `{"outgoing_interface":"tap1-host","dst_network":"10.201.0.0/16","gw_addr":"10.200.0.1"}`},
	{linux("tap1-host"), `{"name":"tap1-host","type":"TAP_TO_VPP","host_if_name":"eth-tap1","enabled":true,"mtu":1400,"ip_addresses":["10.200.0.3/24"],"namespace":{"type":"NSID","reference":"blue"},"tap":{"vpp_tap_if_name":"tap1"}}`},
	{linux("uplink"), `{"name":"uplink","type":"VETH","enabled":true,"ip_addresses":["10.203.0.1/24"],"mtu":1400,"veth":{"peer_if_name":"downlink"}}`},
	{linux("veth-blue"), `{"name":"veth-blue","type":"VETH","enabled":true,"ip_addresses":["10.203.1.1/24"],"veth":{"peer_if_name":"veth-red"}}`},

	// What README files of VPP do not show.
	{plane("bond1"), `{"name":"bond1","type":"BOND_INTERFACE","enabled":true,"bond":{"id":5,"mode":"ROUND_ROBIN","bonded_interfaces":[{"name":"absent"}]}}`},
	{plane("gre1"), `{"name":"gre1","type":"GRE_TUNNEL","enabled":true,"gre":{"tunnel_type":"L3","src_addr":"10.204.0.1","dst_addr":"10.204.0.2"}}`},
	{plane("gre1"), `{"name":"gre1","type":"GRE_TUNNEL","enabled":true,"ip_addresses":["10.205.0.1/24"],"gre":{"tunnel_type":"L3","src_addr":"10.204.0.1","dst_addr":"10.204.0.3"}}`},
	{"config/vpp/nat/v2/nat44-vrf/vrfid/5", `{"src_vrf_id":5,"dest_vrf_ids":[0]}`},
	{"config/vpp/nat/v2/nat44-vrf-route/vrfid/5/destvrfid/5", `{"src_vrf_id":5,"dest_vrf_id":5}`},

	// Values that wait for others that nobody declares, or have parts that do.
	{"config/linux/l3/v2/route/10.206.0.0/16/absent", `{"outgoing_interface":"absent","dst_network":"10.206.0.0/16","gw_addr":"10.207.0.1"}`},
	{"config/vpp/v2/route/if/absent/vrf/0/dst/10.208.0.0/16/gw/10.209.0.4", `{"dst_network":"10.208.0.0/16","next_hop_addr":"10.209.0.4","outgoing_interface":"absent"}`},
	{plane("nowhere"), `{"name":"nowhere","type":"SOFTWARE_LOOPBACK","vrf":77,"ip_addresses":["10.210.0.1/24"]}`},
	{plane("borrower"), `{"name":"borrower","type":"SOFTWARE_LOOPBACK","unnumbered":{"interface_with_ip":"absent"}}`},
	{plane("borrower"), `{"name":"borrower","type":"SOFTWARE_LOOPBACK","unnumbered":{"interface_with_ip":"lan1"}}`},
	{plane("subwaits"), `{"name":"subwaits","type":"SUB_INTERFACE","sub":{"parent_name":"absent","sub_id":7}}`},
	{plane("if1"), `{"name":"if1","type":"SOFTWARE_LOOPBACK","ip_addresses":["alloc:net1","alloc:net2"]}`},
	// It is never valid: a valid value would stay in effect, or not, depending on who has seen it.
	{plane("invalid"), `{"name":"invalid","type":"SOFTWARE_LOOPBACK","ip_addresses":["10.211.0.1/64"]}`},
}

// aFixedNet is a network that READMEs use for different purposes.
var aFixedNet = regexp.MustCompile(`\b(10\.|fd0)(\d)(\.|::)`)

// loops are the names of loopbacks.
var loops = regexp.MustCompile(`\bloop(\d)\b`)

// newMixed returns the configuration with its Linux values in the network namespaces of a side.
func newMixed(t *testing.T) mixed {
	t.Helper()
	m := mixed{}
	for n, file := range mixedREADMEs {
		// Each README has networks of its own, so that no values conflict: of those that do,
		// the one that comes first is applied.
		apart := func(text string) string {
			text = aFixedNet.ReplaceAllStringFunc(text, func(net string) string {
				parts := aFixedNet.FindStringSubmatch(net)
				if parts[1] == "fd0" {
					return fmt.Sprintf("fd%x%s::", n+1, parts[2])
				}
				return fmt.Sprintf("10.%d.", 10*(n+1)+int(parts[2][0]-'0'))
			})
			return text
		}
		for _, items := range readme.Examples(t, "../../descriptors/"+file) {
			for _, it := range items {
				m.add(apart(it.Key), apart(string(it.Value)), file)
			}
		}
	}
	for _, it := range moreMixed {
		m.add(it.key, it.value, "")
	}
	m.coversAllModels(t)
	return m
}

// add adds a value, unless it conflicts with others or has effects that depend on the past.
func (m mixed) add(key, value, file string) {
	switch {
	case file == "vpp/l2/README.md" && key == plane("tap1"):
		return // its name in the kernel depends on the order in which VPP makes TAPs
	case file == "vpp/nat/README.md":
		value = strings.NewReplacer(`"id":1,`, `"id":21,`, `"id":2,`, `"id":22,`).Replace(value)
	}
	// VPP calls loopbacks loop0, loop1 and so on in the order of their creation, which differs.
	key, value = loops.ReplaceAllString(key, "lan$1"), loops.ReplaceAllString(value, "lan$1")
	if key == plane("lan1") && !strings.Contains(value, "physAddress") {
		value = strings.TrimSuffix(value, "}") + `,"physAddress":"02:00:00:00:00:01"}` // VPP's own is random
	}
	// A table keeps its name for as long as it has users, but not over a restart of VPP.
	value = strings.ReplaceAll(value, `,"label":"blue"`, "")
	if !slices.Contains(m[key], value) {
		m[key] = append(m[key], value)
	}
}

// coversAllModels checks that the configuration has a value of each model.
func (m mixed) coversAllModels(t *testing.T) {
	t.Helper()
	has := map[string]bool{}
	for key := range m {
		model, _, ok := models.BuiltIn().ByKey(key)
		if !ok {
			t.Fatalf("%s: no model has this key", key)
		}
		has[model.Name()] = true
	}
	for _, model := range models.BuiltIn().All() {
		if model.Class == "config" && !has[model.Name()] {
			t.Errorf("the mixed configuration has no value of %s", model.Name())
		}
	}
}

// keys are the sorted keys.
func (m mixed) keys() []string { return slices.Sorted(maps.Keys(m)) }

// staying tells keys that come first and go last. Others use them without depending on them:
// iptables keeps a chain to which rules jump, and VPP keeps a VRF table that has users. The last of
// those takes the table away from steering, which VPP cannot end then.
func staying(key string) bool {
	return strings.Contains(key, "/vrf-table/") || strings.HasSuffix(key, "/rulechain/admins")
}
