package packets

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Packets with the tag of a sub-interface arrive by it. Others do not.
func TestSubInterfaceTakesItsVLAN(t *testing.T) {
	l := start(t, "a", "b")
	there := func(vlan uint16) packet {
		return udp("10.0.100.2:1000", "10.9.0.1:2000").tagged(vlan).between(hostMAC("a"), vppMAC("a"))
	}
	l.declare(routed("a", "b"), toB, `vppConfig: {interfaces: [{name: vlan, type: SUB_INTERFACE, enabled: true, ipAddresses: [10.0.100.1/24], sub: {parentName: a, subId: 100}}]}`)
	l.run(
		step{in: "a", packet: there(100), out: []string{"b: 10.0.100.2 > 10.9.0.1 | udp 1000 > 2000"}},
		step{in: "a", packet: there(101), not: []string{"b"}},
	)
	l.declare(routed("a", "b"), toB)
	l.run(step{in: "a", packet: there(100), not: []string{"b"}})
}

// tagged puts a packet behind a VLAN tag.
func (p packet) tagged(vlan uint16) packet {
	p.layers = append([]gopacket.SerializableLayer{&layers.Dot1Q{VLANIdentifier: vlan, Type: p.kind}}, p.layers...)
	p.kind = layers.EthernetTypeDot1Q
	return p
}

// A loopback is the router of a bridge domain.
func TestLoopbackRoutesForABridgeDomain(t *testing.T) {
	l := start(t, "a", "b")
	router := net.HardwareAddr{2, 0xfe, 0, 0, 0, 0x99}
	l.declare(bare("a"), routed("b"), toB, `
vppConfig:
  interfaces: [{name: loop, type: SOFTWARE_LOOPBACK, enabled: true, physAddress: '`+router.String()+`', ipAddresses: [10.0.1.1/24]}]
  arps: [{interface: loop, ipAddress: 10.0.1.2, physAddress: '`+hostMAC("a").String()+`', static: true}]
  bridgeDomains: [{name: bd, flood: true, forward: true, learn: true, interfaces: [{name: a}, {name: loop, bridgedVirtualInterface: true}]}]`)
	l.run(
		step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:2000").between(hostMAC("a"), router), out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}},
		step{in: "b", packet: udp("10.9.0.1:2000", "10.0.1.2:1000"), out: []string{"a: 10.9.0.1 > 10.0.1.2 | udp 2000 > 1000"}},
	)
}

// A bond sends by both of its interfaces in turn.
func TestBondSharesItsInterfaces(t *testing.T) {
	l := start(t, "a", "b", "c")
	l.declare(routed("a"), bare("b", "c"), `
vppConfig:
  interfaces:
    - name: bond
      type: BOND_INTERFACE
      enabled: true
      ipAddresses: [10.0.50.1/24]
      bond: {id: 1, mode: ROUND_ROBIN, bondedInterfaces: [{name: b}, {name: c}]}
  arps: [{interface: bond, ipAddress: 10.0.50.2, physAddress: '`+hostMAC("b").String()+`', static: true}]
  routes: [{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.50.2, outgoingInterface: bond}]`)
	first, second := l.flow("a", 40, "10.0.1.2", "10.9.0.1:2000", "b", "c")
	if first < 10 || second < 10 {
		t.Errorf("%d and %d packets left by the interfaces of the bond; expected about 20 by each", first, second)
	}
}

// Two VPPs share memory.
func TestMemifConnectsTwoVPPs(t *testing.T) {
	p := startPair(t)
	socket := filepath.Join(t.TempDir(), "memif.sock")
	end := func(role, ours, address, theirs, peer, network string) string {
		return `
vppConfig:
  interfaces: [{name: memory, type: MEMIF, enabled: true, physAddress: '` + ours + `', ipAddresses: [` + address + `/24], memif: {id: 1, ` + role + `socketFilename: ` + socket + `}}]
  arps: [{interface: memory, ipAddress: ` + peer + `, physAddress: '` + theirs + `', static: true}]
  routes: [{dstNetwork: ` + network + `, nextHopAddr: ` + peer + `, outgoingInterface: memory}]`
	}
	const one, two = "02:fe:00:00:01:01", "02:fe:00:00:01:02"
	p.declare(end("master: true, ", one, "10.0.60.1", two, "10.0.60.2", "10.9.2.0/24"), end("", two, "10.0.60.2", one, "10.0.60.1", "10.9.1.0/24"))
	for _, vpp := range []*lab{p.lab, p.second} {
		vpp.becomes("vpp/interface/memory/link-state/UP")
	}
	forth, reply := both()
	p.run(
		step{in: "a", packet: forth.packet, out: []string{there}, not: []string{"w"}},
		step{in: "b", packet: reply.packet, out: []string{back}, not: []string{"w"}},
	)
}
