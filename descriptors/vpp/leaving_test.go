package vpp_test

import (
	"net/netip"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// VPP refuses to move an interface to another table while it has an address of this IP version.

// town5 is an interface in VRF 5 with these addresses, and the tables.
func town5(addresses string) []string {
	return []string{
		"config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5}`, "config/vpp/v2/vrf-table/id/5/protocol/IPV6", `{"id":5,"protocol":"IPV6"}`,
		"config/vpp/v2/interfaces/lo1", `{"name":"lo1","type":"SOFTWARE_LOOPBACK","enabled":true,"vrf":5,"ip_addresses":[` + addresses + `]}`,
	}
}

const bothAddresses = `"10.1.0.1/24","fd01::1/64"`

// TestAddressGoesWhileNoAgentRuns has one of two addresses removed from the configuration while no agent runs. The
// interface leaves the table of this IP version alone.
func TestAddressGoesWhileNoAgentRuns(t *testing.T) {
	for _, stays := range []string{`"10.1.0.1/24"`, `"fd01::1/64"`, ""} {
		vpp, notes := simulated.Start(t, simulated.Newest()), notebook{}
		vpp.Watch()
		a := startAgentWith(t, vpp.Socket, nil, notes)
		awaitReady(t, a)
		a.want(true, town5(bothAddresses)...)
		a.stop()
		a = startAgentWith(t, vpp.Socket, nil, notes)
		awaitReady(t, a)
		if _, err := a.declare(true, town5(stays)...); err != nil {
			t.Errorf("%q stays: %v", stays, err)
		}
		if has, want := pages(vpp), whatFreshHas(t, town5(stays)); has != want {
			t.Errorf("%q stays: VPP has\n%s\nwant\n%s", stays, has, want)
		}
		a.resyncsInSync(vpp)
		a.stop()
	}
}

// whatFreshHas is what a VPP shows that never had anything else.
func whatFreshHas(t *testing.T, declared []string) string {
	t.Helper()
	vpp := simulated.Start(t, simulated.Newest())
	a := startAgentKnowing(t, vpp.Socket, quiet())
	defer a.stop()
	awaitReady(t, a)
	a.want(true, declared...)
	return pages(vpp)
}

// TestAddressesLeaveBeforeTheirTables has somebody put an interface into two tables, one for each IP version, while no
// agent runs. The next agent takes each address away before the interface leaves the table of its version.
func TestAddressesLeaveBeforeTheirTables(t *testing.T) {
	const base, loopback = "config/vpp/v2/interfaces/lo1", `{"name":"lo1","type":"SOFTWARE_LOOPBACK","enabled":true`
	tables := []string{
		"config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5}`, "config/vpp/v2/vrf-table/id/6/protocol/IPV4", `{"id":6}`,
		"config/vpp/v2/vrf-table/id/5/protocol/IPV6", `{"id":5,"protocol":"IPV6"}`, "config/vpp/v2/vrf-table/id/6/protocol/IPV6", `{"id":6,"protocol":"IPV6"}`,
	}
	for _, ids := range [][2]uint32{{5, 6}, {6, 5}, {0, 5}, {5, 0}} {
		vpp, notes := simulated.Start(t, simulated.Newest()), notebook{}
		a := startAgentWith(t, vpp.Socket, nil, notes)
		awaitReady(t, a)
		bare := pages(vpp)
		a.want(true, append(tables, base, loopback+"}")...)
		a.stop()
		addByHand(t, vpp, ids)
		a = startAgentWith(t, vpp.Socket, nil, notes)
		awaitReady(t, a)
		if _, err := a.declare(true); err != nil {
			t.Errorf("tables %v: %v", ids, err)
		}
		if has := pages(vpp); has != bare {
			t.Errorf("tables %v: VPP has\n%s\nwant\n%s", ids, has, bare)
		}
		a.stop()
	}
}

// addByHand puts each interface with a name into these tables for IPv4 and IPv6, and gives it an address of each.
func addByHand(t *testing.T, vpp *simulated.VPP, ids [2]uint32) {
	t.Helper()
	hand := vpp.Dial()
	details, err := conn.Dump[vppif.SwInterfaceDetails](t.Context(), hand, &vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range details {
		if d.Tag == "" {
			continue
		}
		for i, address := range []string{"10.1.0.1/24", "fd01::1/64"} {
			vpp.Ask(hand, &vppif.SwInterfaceSetTable{SwIfIndex: d.SwIfIndex, IsIPv6: i == 1, VrfID: ids[i]}, &vppif.SwInterfaceSetTableReply{})
			prefix := vppwire.AddressWithPrefix(netip.MustParsePrefix(address))
			vpp.Ask(hand, &vppif.SwInterfaceAddDelAddress{SwIfIndex: d.SwIfIndex, IsAdd: true, Prefix: prefix}, &vppif.SwInterfaceAddDelAddressReply{})
		}
	}
}
