package packets

import (
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// Packets leave by the tunnel in its header, and those that arrive in it leave without it.
func TestTunnelsEncapsulateAndDecapsulate(t *testing.T) {
	back := udp("10.9.0.1:2000", "10.0.1.2:1000")
	for name, c := range map[string]struct {
		link, header string
		back         packet
	}{
		"IPIP": {
			"type: IPIP_TUNNEL, ipip: {srcAddr: 10.0.2.1, dstAddr: 10.0.2.2}", "10.0.2.1 > 10.0.2.2",
			back.within("10.0.2.2", "10.0.2.1", layers.IPProtocolIPv4),
		},
		"GRE": {
			"type: GRE_TUNNEL, gre: {tunnelType: L3, srcAddr: 10.0.2.1, dstAddr: 10.0.2.2}", "10.0.2.1 > 10.0.2.2 | gre",
			back.within("10.0.2.2", "10.0.2.1", layers.IPProtocolGRE, &layers.GRE{Protocol: layers.EthernetTypeIPv4}),
		},
		"GTPU": {
			"type: GTPU_TUNNEL, gtpu: {srcAddr: 10.0.2.1, dstAddr: 10.0.2.2, teid: 7, remoteTeid: 9, decapNext: IP4}", "10.0.2.1 > 10.0.2.2 | udp > 2152 | gtpu 9",
			back.within("10.0.2.2", "10.0.2.1", layers.IPProtocolUDP, &layers.UDP{SrcPort: 4000, DstPort: 2152}, &layers.GTPv1U{Version: 1, ProtocolType: 1, MessageType: 255, TEID: 7}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, "a", "b")
			there := udp("10.0.1.2:1000", "10.9.0.1:2000")
			l.declare(routed("a", "b"), `vppConfig: {
				interfaces: [{name: tunnel, enabled: true, ipAddresses: [172.16.0.1/30], `+c.link+`}],
				routes: [{dstNetwork: 10.9.0.0/16, nextHopAddr: 172.16.0.2, outgoingInterface: tunnel}]}`)
			l.run(
				step{in: "a", packet: there, out: []string{"b: " + c.header + " | 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}},
				step{in: "b", packet: c.back, out: []string{"a: 10.9.0.1 > 10.0.1.2 | udp 2000 > 1000"}},
			)
			l.declare(routed("a", "b"))
			l.run(
				step{in: "a", packet: there, not: []string{"b"}},
				step{in: "b", packet: c.back, not: []string{"a"}},
			)
		})
	}
}

func TestVXLANEncapsulatesAndDecapsulates(t *testing.T) {
	l := start(t, "a", "b")
	l.declare(bare("a"), routed("b"), `vppConfig: {
		interfaces: [{name: tunnel, type: VXLAN_TUNNEL, enabled: true, vxlan: {srcAddress: 10.0.2.1, dstAddress: 10.0.2.2, vni: 5}}],
		xconnectPairs: [{receiveInterface: a, transmitInterface: tunnel}, {receiveInterface: tunnel, transmitInterface: a}]}`)
	there := udp("10.0.0.1:1", "10.0.0.2:2").between(hostMAC("a"), hostMAC("c"))
	back := vxlan(5, udp("10.0.0.2:2", "10.0.0.1:1").between(hostMAC("c"), hostMAC("a")))
	const inner = "10.0.0.1 > 10.0.0.2 | udp 1 > 2"
	l.run(
		step{in: "a", packet: there, out: []string{"b: 10.0.2.1 > 10.0.2.2 | udp > 4789 | vxlan 5 | eth 02:00:00:00:00:01 > 02:00:00:00:00:03 | " + inner}},
		step{in: "b", packet: back, out: []string{"a: 10.0.0.2 > 10.0.0.1 | udp 2 > 1"}},
	)
	// The ports have addresses, so VPP can show that it has taken the packets.
	l.declare(routed("a", "b"))
	l.run(
		step{in: "a", packet: there, not: []string{"b"}},
		step{in: "b", packet: back, not: []string{"a"}},
	)
}

// vxlan is a frame in the tunnel from the neighbour at b.
func vxlan(vni uint32, inner packet) packet {
	datagram := &layers.UDP{SrcPort: 4000, DstPort: 4789}
	return inner.frame().within("10.0.2.2", "10.0.2.1", layers.IPProtocolUDP, datagram, &layers.VXLAN{ValidIDFlag: true, VNI: vni})
}

// A tunnel to many ends finds the end of a next hop by its TEIB entry.
func TestTEIBLeadsToTheEndOfATunnel(t *testing.T) {
	l := start(t, "a", "b")
	const tunnel = `vppConfig: {
		interfaces: [{name: tunnel, type: IPIP_TUNNEL, enabled: true, ipAddresses: [172.16.0.1/24], ipip: {tunnelMode: POINT_TO_MULTIPOINT, srcAddr: 10.0.2.1}}],
		routes: [{dstNetwork: 10.9.0.0/16, nextHopAddr: 172.16.0.2, outgoingInterface: tunnel}]}`
	there := udp("10.0.1.2:1000", "10.9.0.1:2000")
	l.declare(routed("a", "b"), tunnel, `vppConfig: {teibEntries: [{interface: tunnel, peerAddr: 172.16.0.2, nextHopAddr: 10.0.2.2}]}`)
	l.run(step{in: "a", packet: there, out: []string{"b: 10.0.2.1 > 10.0.2.2 | 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}})
	l.declare(routed("a", "b"), tunnel)
	l.run(step{in: "a", packet: there, not: []string{"b"}})
}
