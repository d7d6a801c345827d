package vpp_test

import (
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/bond"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/scheduler"
)

// TestAnAddressIsTaken declares interfaces that VPP cannot give their addresses, since another one of the VRF has them or
// a network around them. The error names that one, in words. In another VRF there is no conflict.
func TestAnAddressIsTaken(t *testing.T) { onEachVPP(t, anAddressIsTaken) }

func anAddressIsTaken(t *testing.T, vpp *simulated.VPP) {
	const part = "vpp/interface/%/address/static/"
	of := func(name, addr, more string) (key, value, address string) {
		return interfacesPrefix + name, `{"name":"` + name + `","type":"SOFTWARE_LOOPBACK","enabled":true` + more + `,"ip_addresses":["` + addr + `"]}`, strings.ReplaceAll(part, "%", name) + addr
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	holder, value, _ := of("holder", "10.1.0.1/24", "")
	holder6, value6, _ := of("holder6", "fd01::1/64", "")
	a.want(true, holder, value, holder6, value6, "config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5}`)
	for addr, want := range map[string]string{
		"10.1.0.1/24": "the interface holder has 10.1.0.1/24; expected an address that no other interface of this VRF has",
		"10.1.0.9/28": "the interface holder has 10.1.0.1/24, whose network is not apart from that of 10.1.0.9/28; expected a network that no other interface of this VRF has",
		"fd01::1/64":  "the interface holder6 has fd01::1/64; expected an address that no other interface of this VRF has",
	} {
		key, value, address := of("waits", addr, "")
		_, err := a.declare(false, key, value)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "-1") {
			t.Errorf("%s: it says %v; expected %s", addr, err, want)
		}
		a.expectState(key, scheduler.Configured)
		a.expectState(address, scheduler.Retrying)
		a.unwant(key)
	}
	key, value, address := of("apart", "10.1.0.1/24", `,"vrf":5`)
	a.want(false, key, value)
	a.expectState(address, scheduler.Configured)

	// When the holder goes, the next attempt succeeds.
	key, value, address = of("waits", "10.1.0.1/24", "")
	if _, err := a.declare(false, key, value); err == nil {
		t.Error("two interfaces have one address")
	}
	a.unwant(holder)
	if _, err := a.sched.Retry(t.Context(), address); err != nil {
		t.Error(err)
	}
	a.expectState(address, scheduler.Configured)
}

// TestTwoRoutersWithOneAddress declares virtual routers of one interface: the second one is INVALID, names the first, and
// takes over when that goes.
func TestTwoRoutersWithOneAddress(t *testing.T) { onEachVPP(t, twoRoutersWithOneAddress) }

func twoRoutersWithOneAddress(t *testing.T, vpp *simulated.VPP) {
	router := func(id string) (key, value string) {
		return "config/vpp/v2/vrrp/loop1/vrid/" + id, `{"interface":"loop1","vr_id":` + id + `,"priority":9,"interval":1000,"ip_addresses":["10.1.0.7"]}`
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.1.0.1/24"]}`)
	first, value1 := router("7")
	second, value2 := router("8")
	_, err := a.declare(false, first, value1, second, value2)
	if st, _ := a.sched.Status(first); st.State == scheduler.Unimplemented {
		t.Logf("SKIPPED: %v", st.Err) // this VPP lacks the plugin
		return
	}
	if err == nil || !strings.Contains(err.Error(), "(see "+first+")") {
		t.Errorf("it says %v", err)
	}
	a.expectState(first, scheduler.Configured)
	a.expectState(second, scheduler.Invalid)
	a.unwant(first)
	a.expectState(second, scheduler.Configured)
}

// TestAnInterfaceOfOthersHoldsIt has somebody else make what the agent is to make: the error names that interface, in words.
func TestAnInterfaceOfOthersHoldsIt(t *testing.T) { onEachVPP(t, anInterfaceOfOthersHoldsIt) }

func anInterfaceOfOthersHoldsIt(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true}`)
	hand := vpp.Dial()
	made := vppif.CreateVlanSubifReply{}
	vpp.Ask(hand, &vppif.CreateVlanSubif{SwIfIndex: 1, VlanID: 7}, &made)
	const key = interfacesPrefix + "sub"
	_, err := a.declare(false, key, `{"name":"sub","type":"SUB_INTERFACE","sub":{"parent_name":"loop1","sub_id":7}}`)
	if err == nil || !strings.Contains(err.Error(), "sub.sub_id is 7, which the interface UNTAGGED-") || !strings.Contains(err.Error(), " has; expected a VLAN that no other sub-interface of loop1 has") {
		t.Errorf("it says %v", err)
	}
	vpp.Ask(hand, &vppif.DeleteSubif{SwIfIndex: made.SwIfIndex}, &vppif.DeleteSubifReply{})
	if _, err := a.sched.Retry(t.Context(), key); err != nil {
		t.Error(err)
	}
	a.expectState(key, scheduler.Configured)
}

// TestABondOfOthersHasTheMember has somebody else put an interface into a bond: the error names that bond.
func TestABondOfOthersHasTheMember(t *testing.T) { onEachVPP(t, aBondOfOthersHasTheMember) }

func aBondOfOthersHasTheMember(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK"}`)
	hand := vpp.Dial()
	made := bond.BondCreate2Reply{}
	vpp.Ask(hand, &bond.BondCreate2{Mode: bond.BOND_API_MODE_XOR, ID: 7}, &made)
	vpp.Ask(hand, &bond.BondAddMember{SwIfIndex: 1, BondSwIfIndex: made.SwIfIndex}, &bond.BondAddMemberReply{})
	const key, member = interfacesPrefix + "bond1", "vpp/bond/bond1/interface/loop1/"
	_, err := a.declare(false, key, `{"name":"bond1","type":"BOND_INTERFACE","bond":{"id":5,"mode":"XOR","bonded_interfaces":[{"name":"loop1"}]}}`)
	const want = "name is loop1, which the interface BondEthernet7 has; expected an interface that is in no other bond"
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "-81") {
		t.Errorf("it says %v; expected %s", err, want)
	}
	a.expectState(member, scheduler.Retrying)
	vpp.Ask(hand, &bond.BondDetachMember{SwIfIndex: 1}, &bond.BondDetachMemberReply{})
	if _, err := a.sched.Retry(t.Context(), member); err != nil {
		t.Error(err)
	}
	a.expectState(member, scheduler.Configured)
}

// TestMappingsAreInTheWay has mappings that VPP refuses, of an external side that another mapping has: one of somebody else
// without and with a tag, and one of a value that maps the address of an interface. The error names each of them.
func TestMappingsAreInTheWay(t *testing.T) { onEachVPP(t, mappingsAreInTheWay) }

func mappingsAreInTheWay(t *testing.T, vpp *simulated.VPP) {
	a := startAgentKnowing(t, vpp.Socket, memories{label: "vpp1"})
	awaitReady(t, a)
	a.want(true, keys.NAT44Global, `{}`, loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.1.0.1/24"]}`,
		"config/vpp/nat/v2/dnat44/ours", `{"label":"ours","st_mappings":[{"external_interface":"loop1","external_port":82,"local_ips":[{"local_ip":"10.2.0.3","local_port":80}]}]}`)
	hand := vpp.Dial()
	for port, tag := range map[uint16]string{80: "", 81: "theirs"} {
		vpp.Ask(hand, &nat44_ed.Nat44AddDelStaticMapping{
			IsAdd: true, Tag: tag, ExternalIPAddress: [4]byte{10, 1, 0, 1}, ExternalPort: port, Protocol: 6,
			LocalIPAddress: [4]byte{10, 2, 0, 2}, LocalPort: port, ExternalSwIfIndex: ^interface_types.InterfaceIndex(0),
		}, &nat44_ed.Nat44AddDelStaticMappingReply{})
	}
	for external, want := range map[string]string{
		`"external_ip":"10.1.0.1","external_port":80`:     "a mapping of 10.1.0.1:80 TCP without a tag is in the way of 10.1.0.1:80 TCP; expected an external address, port and protocol that no other mapping has",
		`"external_ip":"10.1.0.1","external_port":81`:     `a mapping of 10.1.0.1:81 TCP with the tag "theirs" is in the way of 10.1.0.1:81 TCP`,
		`"external_ip":"10.1.0.1","external_port":82`:     `a mapping of 10.1.0.1:82 TCP with the tag "ours" is in the way of 10.1.0.1:82 TCP`,
		`"external_interface":"loop1","external_port":80`: "a mapping of 10.1.0.1:80 TCP without a tag is in the way of loop1:80 TCP",
	} {
		_, err := a.declare(false, webDNATKey, `{"label":"web","st_mappings":[{`+external+`,"local_ips":[{"local_ip":"10.2.0.4","local_port":80}]}]}`)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "-81") {
			t.Errorf("%s: it says %v; expected %s", external, err, want)
		}
		a.expectState(webDNATKey, scheduler.Retrying)
		a.unwant(webDNATKey)
	}
}

// TestAnInterfaceIsTranslatedOtherwise has somebody else give NAT44 to an interface in the other way. The error says so.
func TestAnInterfaceIsTranslatedOtherwise(t *testing.T) {
	onEachVPP(t, anInterfaceIsTranslatedOtherwise)
}

func anInterfaceIsTranslatedOtherwise(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, keys.NAT44Global, `{}`, interfacesPrefix+"loop1", `{"name":"loop1","type":"SOFTWARE_LOOPBACK"}`)
	a.want(false, interfacesPrefix+"loop2", `{"name":"loop2","type":"SOFTWARE_LOOPBACK"}`)
	hand := vpp.Dial()
	vpp.Ask(hand, &nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: true, SwIfIndex: 1}, &nat44_ed.Nat44EdAddDelOutputInterfaceReply{})
	vpp.Ask(hand, &nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: true, SwIfIndex: 2, Flags: nat_types.NAT_IS_INSIDE}, &nat44_ed.Nat44InterfaceAddDelFeatureReply{})
	for value, want := range map[string]string{
		`{"name":"loop1","nat_inside":true}`:     "the interface loop1 is translated on output already, as somebody else has set",
		`{"name":"loop2","output_feature":true}`: "the interface loop2 has a side already, which somebody else has given to it",
	} {
		key := "config/vpp/nat/v2/nat44-interface/" + value[9:14]
		_, err := a.declare(false, key, value)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "-81") {
			t.Errorf("%s: it says %v; expected %s", value, err, want)
		}
		a.expectState(key, scheduler.Retrying)
	}
}
