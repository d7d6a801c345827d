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
