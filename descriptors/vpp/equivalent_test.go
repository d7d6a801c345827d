package vpp_test

import (
	"net/netip"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/scheduler"
)

// TestWhatIsAlikeIsLeftAlone reads back what VPP tells in other words than are declared.
func TestWhatIsAlikeIsLeftAlone(t *testing.T) { onEachVPP(t, whatIsAlikeIsLeftAlone) }

func whatIsAlikeIsLeftAlone(t *testing.T, vpp *simulated.VPP) {
	all := []string{
		// MAC addresses
		loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"phys_address":"0200.0000.0001","ip_addresses":["10.1.0.1/24"]}`,
		bridgeKey, `{"name":"bd1","forward":true,"interfaces":[{"name":"loop2"}],"arp_termination_table":[{"ip_address":"10.1.0.9","phys_address":"02-00-00-00-00-09"}]}`,
		"config/vpp/l2/v2/fib/bd1/mac/02-00-00-00-00-0A", `{"bridge_domain":"bd1","phys_address":"02-00-00-00-00-0A","outgoing_interface":"loop2","static_config":true}`,
		"config/vpp/v2/arp/loop1/10.1.0.9", `{"interface":"loop1","ip_address":"10.1.0.9","phys_address":"02-00-00-00-00-09","static":true}`,
		// VRFs of interfaces that have no address of their own
		"config/vpp/v2/interfaces/loop2", `{"name":"loop2","type":"SOFTWARE_LOOPBACK","vrf":5}`,
		"config/vpp/v2/interfaces/loop3", `{"name":"loop3","type":"SOFTWARE_LOOPBACK","vrf":5,"unnumbered":{"interface_with_ip":"loop1"}}`,
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, all...)
	for i := 0; i < len(all); i += 2 {
		a.expectState(all[i], scheduler.Configured)
	}
	vpp.Counts()
	a.want(true, all...)
	expectOnlyReads(t, vpp)
	expectRestartReads(t, vpp, a, all...)
}

// TestAddressesOfAutoconfStay has an interface the address that VPP gives to it when a router
// advertises its network: it stays, and goes when the interface takes no such addresses.
func TestAddressesOfAutoconfStay(t *testing.T) { onEachVPP(t, addressesOfAutoconfStay) }

func addressesOfAutoconfStay(t *testing.T, vpp *simulated.VPP) {
	const plain, auto = `{"name":"loop1","type":"SOFTWARE_LOOPBACK","ip_addresses":["fd01::1/64"]}`,
		`{"name":"loop1","type":"SOFTWARE_LOOPBACK","ip_addresses":["fd01::1/64"],"ip6_nd":{"address_autoconfig":true}}`
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, loopKey, auto)
	hand := vpp.Dial()
	address := vppwire.AddressWithPrefix(netip.MustParsePrefix("fd02::dcad:ff:fe00:0/64"))
	vpp.Ask(hand, &vppif.SwInterfaceAddDelAddress{SwIfIndex: 1, IsAdd: true, Prefix: address}, &vppif.SwInterfaceAddDelAddressReply{})

	vpp.Counts()
	a.want(true, loopKey, auto)
	expectOnlyReads(t, vpp)
	a.stop()
	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.want(true, loopKey, auto)
	awaits(t, vpp, "show interface", "fd02::dcad:ff:fe00:0/64")

	again.want(false, loopKey, plain)
	again.want(true, loopKey, plain)
	if text := vpp.Show("show interface"); strings.Contains(text, "fd02::") || !strings.Contains(text, "fd01::1/64") {
		t.Errorf("left behind:\n%s", text)
	}
}
