package vpp_test

import (
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
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
