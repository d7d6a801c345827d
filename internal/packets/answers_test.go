package packets

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
)

// VPP answers for the addresses of a range on one interface.
func TestProxyARPAnswersForItsRange(t *testing.T) {
	l := start(t, "a", "b")
	l.declare(routed("a", "b"), `vppConfig: {proxyArp: {interfaces: [{name: a}], ranges: [{firstIpAddr: 10.0.0.100, lastIpAddr: 10.0.9.199}]}}`)
	l.asks("a", net.IPv4(10, 0, 1, 100), vppMAC("a"))
	l.asks("a", net.IPv4(10, 0, 9, 199), vppMAC("a"))
	l.asks("a", net.IPv4(10, 0, 9, 200), nil)
	l.asks("b", net.IPv4(10, 0, 2, 100), nil)
	l.declare(routed("a", "b"))
	l.asks("a", net.IPv4(10, 0, 1, 100), nil)
}

// VPP relays a client's question to the server, and asks for the answer at the address of the proxy.
func TestDHCPProxyRelays(t *testing.T) {
	l := start(t, "a", "b")
	l.declare(routed("a", "b"), `vppConfig: {dhcpProxies: [{sourceIpAddress: 10.0.2.1, servers: [{ipAddress: 10.0.2.2}]}]}`)
	relayed := fmt.Sprintf("10.0.2.1 > 10.0.2.2 | udp 68 > 67 | dhcp of %v by 10.0.2.1", hostMAC("a"))
	arrives := func(got string) bool { return strings.HasPrefix(got, relayed) }
	l.put("a", discover("a"))
	l.await("b", relayed, arrives)
	l.declare(routed("a", "b"))
	l.put("a", discover("a"))
	l.fence("a", "b")
	if i := slices.IndexFunc(l.ports["b"].seen, arrives); i >= 0 {
		t.Errorf("without the proxy, VPP relays %s", l.ports["b"].seen[i])
	}
}

// VPP asks a neighbour again that it has not heard of for a minute, the shortest age of the model.
func TestScanAsksNeighbours(t *testing.T) {
	l := start(t, "a")
	l.declare(routed("a"), `vppConfig: {ipscanNeighbor: {mode: IPV4, staleThreshold: 1}}`)
	neighbour := net.IPv4(10, 0, 1, 77)
	l.put("a", arpOf("a", neighbour, net.IPv4(10, 0, 1, 1)))
	l.expect("a", fmt.Sprintf("arp 10.0.1.1 is at %v", vppMAC("a")))
	l.expect("a", "arp who has 10.0.1.77")
}

// VPP reports the packets that leave by an interface to a collector.
func TestFlowsAreExported(t *testing.T) {
	l := start(t, "a", "b", "c")
	const exporter = `vppConfig: {ipfixGlobal: {collector: {address: 10.0.3.2}, sourceAddress: 10.0.3.1, templateInterval: 1}}`
	recording := `
vppConfig:
  ipfixFlowprobeParams: {recordL3: true, recordL4: true}
  ipfixFlowprobes: [{interface: b, ip4: true}]`
	l.declare(routed("a", "b", "c"), toB, exporter, recording)
	reported := func(sort string) func(string) bool {
		return func(got string) bool {
			return strings.HasPrefix(got, "10.0.3.1 > 10.0.3.2 | udp ") && strings.HasSuffix(got, " | ipfix "+sort)
		}
	}
	l.run(step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:2000"), out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}})
	l.await("c", "templates of IPFIX", reported("templates"))
	l.await("c", "a flow of IPFIX", reported("flows"))
}

// asks asks by ARP for an address at a port, and expects this answer, or none.
func (l *lab) asks(port string, address net.IP, at net.HardwareAddr) {
	l.Helper()
	l.put(port, arp(port, address))
	if at != nil {
		l.expect(port, fmt.Sprintf("arp %v is at %v", address, at))
		return
	}
	l.fence(port, port)
	answer := fmt.Sprintf("arp %v is at ", address)
	if i := slices.IndexFunc(l.ports[port].seen, func(got string) bool { return strings.HasPrefix(got, answer) }); i >= 0 {
		l.Fatalf("VPP answers at %s: %s; it must not", port, l.ports[port].seen[i])
	}
}

// VPP becomes the master, since nobody else is, and has the address.
func TestVRRPAnswersForTheVirtualAddress(t *testing.T) {
	l := start(t, "a", "b")
	virtual, mac := net.IPv4(10, 0, 1, 254), net.HardwareAddr{0, 0, 0x5e, 0, 1, 7}
	l.declare(routed("a", "b"), toB, `vppConfig: {VRRPEntry_list: [{interface: a, vrId: 7, priority: 100, interval: 100, accept: true, ipAddresses: [10.0.1.254], enabled: true}]}`)
	// It tells all others.
	l.await("a", "an advertisement", func(got string) bool { return strings.HasPrefix(got, "10.0.1.1 > 224.0.0.18 | ") })
	l.asks("a", virtual, mac)
	l.run(step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:2000").between(hostMAC("a"), mac), out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}})

	l.declare(routed("a", "b"), toB)
	l.asks("a", virtual, nil)
	l.run(step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:2000").between(hostMAC("a"), mac), not: []string{"b"}})
}
