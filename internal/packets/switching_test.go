package packets

import (
	"net"
	"testing"
)

// everybody is the address of frames that a bridge domain floods.
func everybody() net.HardwareAddr { return net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff} }

// floods is the fence of a bridge domain: a frame to everybody comes out of all other ports, so
// one of them stands for the port that it went into.
func (l *lab) floods(in, out string) {
	l.Helper()
	for other := range l.ports {
		if in == out && other != in {
			out = other
		}
	}
	mark := l.send(in, udp("10.0.0.8:7", "10.0.0.9:7").between(net.HardwareAddr{2, 0, 0, 0, 1, number(in)}, everybody()))
	l.expect(out, "10.0.0.8 > 10.0.0.9 | udp 7 > 7 | "+mark)
}

func TestBridgeDomainFloodsLearnsAndForwardsByFIB(t *testing.T) {
	l := start(t, "a", "b", "c")
	static := net.HardwareAddr{2, 0, 0, 0, 0, 0x99}
	l.passes = l.floods
	l.declare(bare("a", "b", "c"), `
vppConfig:
  bridgeDomains: [{name: bd, flood: true, unknownUnicastFlood: true, forward: true, learn: true, interfaces: [{name: a}, {name: b}, {name: c}]}]
  fibs: [{bridgeDomain: bd, physAddress: '`+static.String()+`', outgoingInterface: c, staticConfig: true}]`)
	const text = "10.0.0.1 > 10.0.0.2 | udp 1 > 2"
	p := udp("10.0.0.1:1", "10.0.0.2:2")
	l.run(
		step{in: "a", packet: p.between(hostMAC("a"), everybody()), out: []string{"b: " + text, "c: " + text}},
		step{in: "a", packet: p.between(hostMAC("a"), hostMAC("b")), out: []string{"b: " + text, "c: " + text}}, // not known yet
		step{in: "b", packet: p.between(hostMAC("b"), hostMAC("a")), out: []string{"a: " + text}, not: []string{"c"}},
		step{in: "a", packet: p.between(hostMAC("a"), hostMAC("b")), out: []string{"b: " + text}, not: []string{"c"}},
		step{in: "a", packet: p.between(hostMAC("a"), static), out: []string{"c: " + text}, not: []string{"b"}},
	)
}

func TestCrossConnect(t *testing.T) {
	l := start(t, "a", "b")
	l.declare(bare("a", "b"), `vppConfig: {xconnectPairs: [{receiveInterface: a, transmitInterface: b}, {receiveInterface: b, transmitInterface: a}]}`)
	p := udp("10.0.0.1:1", "10.0.0.2:2").between(hostMAC("a"), hostMAC("b"))
	l.run(
		step{in: "a", packet: p, out: []string{"b: 10.0.0.1 > 10.0.0.2 | udp 1 > 2"}},
		step{in: "b", packet: p, out: []string{"a: 10.0.0.1 > 10.0.0.2 | udp 1 > 2"}},
	)
}

func TestSPANMirrors(t *testing.T) {
	l := start(t, "a", "b", "c")
	route := `vppConfig: {routes: [{dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b}]}`
	l.declare(routed("a", "b", "c"), route, `vppConfig: {spans: [{interfaceFrom: a, interfaceTo: c, direction: RX}]}`)
	l.run(
		step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:2000"), out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000", "c: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}},
		step{in: "b", packet: udp("10.9.0.1:2000", "10.0.1.2:1000"), out: []string{"a: 10.9.0.1 > 10.0.1.2 | udp 2000 > 1000"}, not: []string{"c"}},
	)
	l.declare(routed("a", "b", "c"), route)
	l.run(step{in: "a", packet: udp("10.0.1.2:1000", "10.9.0.1:2000"), out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}, not: []string{"c"}})
}

// A mirror of layer 2 copies the frames that a bridge domain takes from an interface, or sends out of it.
func TestSPANMirrorsLayer2(t *testing.T) {
	const text = "10.0.0.1 > 10.0.0.2 | udp 1 > 2"
	l := start(t, "a", "b", "c")
	there := map[string]string{"a": "b", "b": "a"}
	frame := udp("10.0.0.1:1", "10.0.0.2:2")
	for direction, from := range map[string]string{"RX": "a", "TX": "b"} {
		t.Log(direction)
		l.passes = func(in, out string) {
			if in == out {
				l.floods(in, there[in])
			} else {
				l.floods(from, out) // the next copy
			}
		}
		l.declare(bare("a", "b", "c"), `
vppConfig:
  bridgeDomains:
    - {name: bd, flood: true, unknownUnicastFlood: true, forward: true, learn: true, interfaces: [{name: a}, {name: b}]}
    - {name: watch, interfaces: [{name: c}]}
  spans: [{interfaceFrom: a, interfaceTo: c, direction: `+direction+`, isL2: true}]`)
		to := there[from]
		l.run(
			step{in: from, packet: frame.between(hostMAC(from), everybody()), out: []string{to + ": " + text, "c: " + text}},
			step{in: to, packet: frame.between(hostMAC(to), everybody()), out: []string{from + ": " + text}, not: []string{"c"}},
		)
	}
}

// A cross-connect of layer 3 leads all packets of an interface to another one; routes have no say.
func TestL3CrossConnect(t *testing.T) {
	l := start(t, "a", "b", "c")
	l.declare(routed("a", "b", "c"), toB, `vppConfig: {l3xconnects: [{interface: a, protocol: IPV4, paths: [{outgoingInterface: c, nextHopAddr: 10.0.3.2}]}]}`)
	p := udp("10.0.1.2:1000", "10.9.0.1:2000")
	l.run(step{in: "a", packet: p, out: []string{"c: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}, not: []string{"b"}})
	l.declare(routed("a", "b", "c"), toB)
	l.run(step{in: "a", packet: p, out: []string{"b: 10.0.1.2 > 10.9.0.1 | udp 1000 > 2000"}, not: []string{"c"}})
}
