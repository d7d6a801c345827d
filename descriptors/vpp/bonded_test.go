package vpp_test

import (
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
)

// TestMembersHaveTheAddressOfTheirBond declares MAC addresses of interfaces in a bond. VPP gives the
// address of the bond to them, which is no difference, and no other change sets the declared one.
// An address that is declared meanwhile is set when the interface has left.
func TestMembersHaveTheAddressOfTheirBond(t *testing.T) {
	onEachVPP(t, membersHaveTheAddressOfTheirBond)
}

func membersHaveTheAddressOfTheirBond(t *testing.T, vpp *simulated.VPP) {
	const first, second, later, bondKey = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03", interfacesPrefix + "bond1"
	bond := func(members string) []string {
		return []string{bondKey, `{"name":"bond1","type":"BOND_INTERFACE","bond":{"id":5,"mode":"XOR","bonded_interfaces":[` + members + `]}}`}
	}
	loopback := func(name, mac, more string) []string {
		return []string{interfacesPrefix + name, `{"name":"` + name + `","type":"SOFTWARE_LOOPBACK","phys_address":"` + mac + `"` + more + `}`}
	}
	hands := vpp.Dial()
	have := func(when string, want map[string]string) {
		t.Helper()
		for _, d := range listed[vppif.SwInterfaceDetails](t, hands, &vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}) {
			if mac := want[d.Tag]; mac != "" && d.L2Address.String() != mac {
				t.Errorf("%s: %s has %s, want %s", when, d.Tag, d.L2Address, mac)
			}
		}
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, append(loopback("loop1", first, ""), bond(`{"name":"loop1"}`)...)...)
	// The bond has the address of its first member.
	a.want(false, append(loopback("loop2", second, ""), bond(`{"name":"loop1"},{"name":"loop2"}`)...)...)
	bonded := map[string]string{"bond1": first, "loop1": first, "loop2": first}
	have("in the bond", bonded)
	a.resyncsInSync(vpp)
	a.want(false, loopback("loop2", second, `,"mtu":1400`)...)
	have("with another MTU", bonded)
	a.want(false, loopback("loop2", later, `,"mtu":1400`)...)
	have("with another declared address", bonded)
	a.resyncsInSync(vpp)

	// An agent that is started again does not know which address VPP has for the member.
	a.stop()
	a = startAgent(t, vpp.Socket)
	awaitReady(t, a)
	all := append(loopback("loop1", first, ""), loopback("loop2", later, `,"mtu":1400`)...)
	a.want(true, append(all, bond(`{"name":"loop1"},{"name":"loop2"}`)...)...)
	have("known to another agent", bonded)
	a.want(false, bond(`{"name":"loop1"}`)...)
	have("it has left the bond", map[string]string{"bond1": first, "loop1": first, "loop2": later})
	a.resyncsInSync(vpp)
}

// TestBondKeepsItsAddress declares the MAC address of a bond that has a member already. The member
// gets it too, and the bond keeps it when its member is made anew.
func TestBondKeepsItsAddress(t *testing.T) { onEachVPP(t, bondKeepsItsAddress) }

func bondKeepsItsAddress(t *testing.T, vpp *simulated.VPP) {
	const first, declared = "02:00:00:00:00:01", "02:00:00:00:00:42"
	bond := func(more string) []string {
		return []string{interfacesPrefix + "bond1", `{"name":"bond1","type":"BOND_INTERFACE","bond":{"id":5,"mode":"XOR","bonded_interfaces":[{"name":"memif1"}]}` + more + `}`}
	}
	member := func(id string) []string {
		return []string{interfacesPrefix + "memif1", `{"name":"memif1","type":"MEMIF","phys_address":"` + first + `","memif":{"id":` + id + `}}`}
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	hands := vpp.Dial()
	both := func(when, mac string) {
		t.Helper()
		for _, d := range listed[vppif.SwInterfaceDetails](t, hands, &vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}) {
			if d.Tag != "" && d.L2Address.String() != mac {
				t.Errorf("%s: %s has %s, want %s", when, d.Tag, d.L2Address, mac)
			}
		}
		a.resyncsInSync(vpp)
	}
	a.want(true, append(member("7"), bond("")...)...)
	both("without a declared address", first)
	a.want(false, bond(`,"phys_address":"`+declared+`"`)...)
	both("with a declared address", declared)
	a.want(false, member("8")...)
	both("with a new member", declared)
}
