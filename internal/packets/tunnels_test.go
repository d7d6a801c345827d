package packets

import "testing"

func TestTunnelsEncapsulate(t *testing.T) {
	for name, c := range map[string]struct{ link, header string }{
		"IPIP": {"type: IPIP_TUNNEL, ipip: {srcAddr: 10.0.2.1, dstAddr: 10.0.2.2}", "10.0.2.1 > 10.0.2.2"},
		"GRE":  {"type: GRE_TUNNEL, gre: {tunnelType: L3, srcAddr: 10.0.2.1, dstAddr: 10.0.2.2}", "10.0.2.1 > 10.0.2.2 | gre"},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, "a", "b")
			l.declare(routed("a", "b"), `vppConfig: {
				interfaces: [{name: tunnel, enabled: true, ipAddresses: [172.16.0.1/30], `+c.link+`}],
				routes: [{dstNetwork: 10.9.0.0/16, nextHopAddr: 172.16.0.2, outgoingInterface: tunnel}]}`)
			l.run(step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:2000"), out: []string{"b: " + c.header + " | 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}})
		})
	}
}

func TestVXLANEncapsulates(t *testing.T) {
	l := start(t, "a", "b")
	l.declare(bare("a"), routed("b"), `vppConfig: {
		interfaces: [{name: tunnel, type: VXLAN_TUNNEL, enabled: true, vxlan: {srcAddress: 10.0.2.1, dstAddress: 10.0.2.2, vni: 5}}],
		xconnectPairs: [{receiveInterface: a, transmitInterface: tunnel}, {receiveInterface: tunnel, transmitInterface: a}]}`)
	l.run(step{
		in: "a", packet: udp("10.0.0.1:1", "10.0.0.2:2").between(hostMAC("a"), hostMAC("c")),
		out: []string{"b: 10.0.2.1 > 10.0.2.2 | udp > 4789 | vxlan 5 | eth 02:00:00:00:00:01 > 02:00:00:00:00:03 | 10.0.0.1 > 10.0.0.2 | udp 1 > 2"},
	})
}
