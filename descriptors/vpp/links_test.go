package vpp_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/bond"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/scheduler"
)

// TestLinks has links that VPP does not say are up: of a bond, which is so before it is
// enabled, and of a sub-interface, which has that of its parent.
func TestLinks(t *testing.T) { onEachVPP(t, links) }

func links(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true,
		loopKey, loop, // from 26.06 on, a bond has a link while a member of it has one
		"config/vpp/v2/interfaces/bond1", `{"name":"bond1","type":"BOND_INTERFACE","enabled":true,"bond":{"mode":"XOR","bonded_interfaces":[{"name":"loop1"}]}}`,
		"config/vpp/v2/interfaces/sub1", `{"name":"sub1","type":"SUB_INTERFACE","enabled":true,"sub":{"parent_name":"bond1","sub_id":7}}`,
	)
	is := func(state string) {
		t.Helper()
		for _, name := range []string{"bond1", "sub1"} {
			a.awaitState("vpp/interface/"+name+"/link-state/"+state, scheduler.Obtained)
		}
	}
	is("UP")
	c := vpp.Dial()
	all, err := conn.Dump[bond.SwBondInterfaceDetails](t.Context(), c, &bond.SwBondInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	for _, state := range []string{"DOWN", "UP"} {
		flags := vppif.SwInterfaceSetFlags{SwIfIndex: all[0].SwIfIndex}
		if state == "UP" {
			flags.Flags = 1
		}
		vpp.Ask(c, &flags, &vppif.SwInterfaceSetFlagsReply{})
		is(state)
	}
}

// TestBorrower has an interface, to which somebody has given an address, borrow one: nothing
// is left of its own, and the lender keeps its.
func TestBorrower(t *testing.T) { onEachVPP(t, borrower) }

func borrower(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	const base, own = "config/vpp/v2/interfaces/", `{"name":"lo2","type":"SOFTWARE_LOOPBACK","enabled":true`
	a.want(true, base+"lo1", `{"name":"lo1","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.1.0.1/24"]}`, base+"lo2", own+"}")
	index := interface_types.InterfaceIndex(0)
	c := vpp.Dial()
	details, err := conn.Dump[vppif.SwInterfaceDetails](t.Context(), c, &vppif.SwInterfaceDump{SwIfIndex: ^index})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range details {
		if d.Tag == "lo2" {
			index = d.SwIfIndex
		}
	}
	prefix := vppwire.AddressWithPrefix(netip.MustParsePrefix("10.5.0.1/24"))
	vpp.Ask(c, &vppif.SwInterfaceAddDelAddress{SwIfIndex: index, IsAdd: true, Prefix: prefix}, &vppif.SwInterfaceAddDelAddressReply{})
	for range 2 {
		a.want(false, base+"lo2", own+`,"unnumbered":{"interface_with_ip":"lo1"}}`)
		a.want(false, base+"lo2", own+`,"unnumbered":{"interface_with_ip":"lo1"},"mtu":1400}`)
		awaits(t, vpp, "show ip fib", "10.1.0.1/24 via 0.0.0.0", "10.1.0.1/32 via")
		if left := vpp.Show("show ip fib"); strings.Contains(left, "10.5.0.") {
			t.Errorf("left behind:\n%s", left)
		}
		a.want(false, base+"lo2", own+"}")
	}
}

// TestVRFOfNoAddress has an interface, and one that is to borrow its address, in a VRF before
// there is an address: they leave it when it goes, also if that is noticed as all is read back.
func TestVRFOfNoAddress(t *testing.T) { onEachVPP(t, vrfOfNoAddress) }

func vrfOfNoAddress(t *testing.T, vpp *simulated.VPP) {
	const base = "config/vpp/v2/interfaces/"
	declared := []string{
		base + "lo1", `{"name":"lo1","type":"SOFTWARE_LOOPBACK","enabled":true,"vrf":5,"ip_addresses":["alloc:net1"]}`,
		base + "lo2", `{"name":"lo2","type":"SOFTWARE_LOOPBACK","enabled":true,"unnumbered":{"interface_with_ip":"lo1"}}`,
		"config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5}`,
		"config/vpp/v2/vrf-table/id/5/protocol/IPV6", `{"id":5,"protocol":"IPV6"}`,
	}
	notes := notebook{}
	a := startAgentWith(t, vpp.Socket, nil, notes)
	awaitReady(t, a)
	for _, restart := range []bool{false, true} {
		a.want(true, declared...)
		a.expectState(keys.VRF{Interface: "lo2", From: "lo1"}.Key(), scheduler.Configured)
		awaits(t, vpp, "show interface", "lo1 up 5", "lo2 up 5")
		if restart {
			a.stop()
			a = startAgentWith(t, vpp.Socket, nil, notes)
		}
		a.want(true, declared[:4]...)
		awaits(t, vpp, "show interface", "lo1 up 0", "lo2 up 0")
		tables := func() string { return vpp.Show("show ip table") }
		until(t, func() bool { return !strings.Contains(tables(), "VRF:5") }, tables)
	}
}

// TestLinksOfReusedIndexes has interfaces come and go quickly, so that VPP gives their indexes to others
// at once. VPP reports a link of a new interface while the agent still knows its index under the name
// of a deleted one: each interface that stands has a link nevertheless.
func TestLinksOfReusedIndexes(t *testing.T) { draw.Each(t, reuseIndexes) }

func reuseIndexes(t *testing.T, seed uint64) {
	const count, rounds, steps = 8, 60, 20
	vpp := simulated.Start(t, simulated.Newest())
	a := startAgentKnowing(t, vpp.Socket, quiet())
	awaitReady(t, a)
	random, declared := rand.New(rand.NewPCG(seed, 0)), [count]bool{}
	name := func(i int) string { return fmt.Sprint("lan", i) }
	wrong := func() string {
		for i := range count {
			if _, has := a.sched.Status(keys.Interface(name(i)).LinkState(true)); has != declared[i] {
				return fmt.Sprintf("%s is declared: %v; its link is up: %v\n%s", name(i), declared[i], has, vpp.Show("show interface"))
			}
		}
		return ""
	}
	for range rounds {
		for range steps {
			var gone scheduler.Txn
			var come []string
			for _, i := range random.Perm(count)[:1+random.IntN(4)] {
				if declared[i] = !declared[i]; declared[i] {
					come = append(come, interfacesPrefix+name(i), fmt.Sprintf(`{"name":%q,"type":"SOFTWARE_LOOPBACK","enabled":true}`, name(i)))
				} else {
					gone.Changes = append(gone.Changes, scheduler.Unwant(interfacesPrefix+name(i)))
				}
			}
			if _, err := a.sched.Commit(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			a.want(false, come...)
		}
		until(t, func() bool { return wrong() == "" }, wrong)
	}
}
