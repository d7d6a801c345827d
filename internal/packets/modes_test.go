package packets

import (
	"strings"
	"testing"
)

// steeredFrames steers the frames of an interface into a policy.
func steeredFrames(name string) string {
	return `vppConfig:
  srv6Global: {encapSourceAddress: "fd00:3::1"}
  srv6Policies: [{bsid: "fd12::1", srhEncapsulation: true, segmentLists: [{weight: 1, segments: ["fd11::9"]}]}]
  srv6Steerings: [{name: frames, policyBsid: "fd12::1", l2Traffic: {interfaceName: ` + name + `}}]
`
}

// kept has lists of both kinds and directions, a mirror, and the rewriting of VLAN tags.
const kept = `
    - {name: vlan, type: SUB_INTERFACE, enabled: true, sub: {parentName: a, subId: 100, tagRwOption: POP1}}
  spans:
    - {interfaceFrom: a, interfaceTo: c, direction: RX}
  acls:
    - name: ports
      rules:
        - {action: DENY, ipRule: {ip: {sourceNetwork: 0.0.0.0/0}, udp: {destinationPortRange: {lowerPort: 82, upperPort: 82}, sourcePortRange: {upperPort: 65535}}}}
        - {action: PERMIT, ipRule: {ip: {sourceNetwork: 0.0.0.0/0}}}
      interfaces: {ingress: [a]}
    - name: out
      rules:
        - {action: DENY, ipRule: {ip: {sourceNetwork: 0.0.0.0/0}, udp: {destinationPortRange: {lowerPort: 83, upperPort: 83}, sourcePortRange: {upperPort: 65535}}}}
        - {action: PERMIT, ipRule: {ip: {sourceNetwork: 0.0.0.0/0}}}
      interfaces: {egress: [b]}
    - name: hosts
      rules:
        - {action: DENY, macipRule: {sourceAddress: 10.0.1.3, sourceAddressPrefix: 32, sourceMacAddress: '00:00:00:00:00:00', sourceMacAddressMask: '00:00:00:00:00:00'}}
        - {action: PERMIT, macipRule: {sourceAddress: 0.0.0.0, sourceAddressPrefix: 0, sourceMacAddress: '00:00:00:00:00:00', sourceMacAddressMask: '00:00:00:00:00:00'}}
      interfaces: {ingress: [a]}
`

// watched has the frames of layer 2 that b sends copied to e, which is alone in a bridge domain.
const watched = `vppConfig:
  bridgeDomains: [{name: watch, interfaces: [{name: e}]}]
  spans: [{interfaceFrom: b, interfaceTo: e, direction: TX, isL2: true}]
`

// A mode is what an interface does with packets: it routes them, or what layer 2 does.
type mode struct {
	name      string
	documents []string
	layer2    bool
	vlan      bool                 // the frames of the sub-interface pass, too
	out       string               // the port at which packets come out
	text      string               // before the packet there
	copies    []string             // the ports that get a copy
	passes    func(in, out string) // see lab.passes
}

// TestModesKeepFeatures has interfaces with lists, mirrors and the rewriting of VLAN tags go from each mode into each
// other one: layer 3, a bridge domain, a cross-connect, and the steering of frames. All that a mode can have works there.
func TestModesKeepFeatures(t *testing.T) {
	const (
		text    = "10.0.1.2 > 10.9.0.1 | udp 1000 > "
		bridged = `vppConfig: {bridgeDomains: [{name: bd, flood: true, unknownUnicastFlood: true, forward: true, learn: true, interfaces: [{name: a}, {name: b}, {name: vlan}]}]}`
		crossed = `vppConfig: {xconnectPairs: [{receiveInterface: a, transmitInterface: b}, {receiveInterface: b, transmitInterface: a}]}`
		beyond  = `vppConfig: {routes: [{dstNetwork: "fd11::9/128", nextHopAddr: "fd00:4::2", outgoingInterface: d}]}`
		outer   = "fd00:3::1 > fd11::9 | ethernet | "
	)
	l := start(t, "a", "b", "c", "d", "e")
	frames := func(string, string) { l.floods("a", "b") }
	encapsulated := func(string, string) {
		mark := l.send("a", udp("10.0.1.9:7", "10.0.0.9:7").between(hostMAC("a"), everybody()))
		l.expect("d", outer+"10.0.1.9 > 10.0.0.9 | udp 7 > 7 | "+mark)
	}
	inLayer2, inLayer3 := bare("a", "b", "c", "e")+kept, strings.Replace(routed("a", "b", "c"), "  arps:", strings.TrimSuffix(strings.TrimPrefix(kept, "\n"), "\n")+"\n  arps:", 1)
	modes := []mode{
		{name: "layer 3", documents: []string{inLayer3, toB, bare("e")}, out: "b", copies: []string{"c"}},
		{name: "a bridge domain", documents: []string{inLayer2, bridged, watched}, layer2: true, vlan: true, out: "b", copies: []string{"c", "e"}, passes: frames},
		{name: "a cross-connect", documents: []string{inLayer2, crossed, watched}, layer2: true, out: "b", copies: []string{"c", "e"}, passes: frames},
		{name: "steering of a", documents: []string{inLayer2, steeredFrames("a")}, layer2: true, out: "d", text: outer, copies: []string{"c"}, passes: encapsulated},
		{name: "steering of b", documents: []string{inLayer2, steeredFrames("b")}}, // no frame comes to b then
	}
	seen := 4
	if !l.since("26.06") {
		seen = 3 // VPP steers the frames before the lists look at them
	}
	for _, first := range modes {
		for _, then := range modes[:seen] {
			t.Log(then.name + " after " + first.name)
			l.declare(append(first.documents, routed("d"), beyond)...)
			l.declare(append(then.documents, routed("d"), beyond)...)
			l.passes = then.passes
			l.keeps(then, text)
		}
	}
}

// keeps sends what the lists of kept permit and deny, and looks for copies.
func (l *lab) keeps(in mode, text string) {
	l.Helper()
	to := func(from, port string) packet {
		p := udp(from+":1000", "10.9.0.1:"+port)
		if in.layer2 {
			p = p.between(hostMAC("a"), everybody())
		}
		return p
	}
	permitted := step{in: "a", packet: to("10.0.1.2", "80"), out: []string{in.out + ": " + in.text + text + "80"}}
	for _, port := range in.copies {
		permitted.out = append(permitted.out, port+": "+text+"80")
	}
	l.run(
		permitted,
		step{in: "a", packet: to("10.0.1.2", "82"), not: []string{in.out}},
		step{in: "a", packet: to("10.0.1.3", "80"), not: []string{in.out}},
	)
	if in.out == "b" { // the list of outgoing packets is that of b
		l.run(step{in: "a", packet: to("10.0.1.2", "83"), not: []string{"b"}})
	}
	if in.vlan {
		l.run(step{in: "a", packet: to("10.0.1.2", "80").tagged(100), out: []string{"b: " + text + "80"}})
	}
}

// The frames of a sub-interface are steered without the tag that its rewriting takes off, also after it was in a bridge domain.
func TestSteeringRewritesTags(t *testing.T) {
	const vlan = `
    - {name: vlan, type: SUB_INTERFACE, enabled: true, sub: {parentName: a, subId: 100, tagRwOption: POP1}}
`
	l := start(t, "a", "b", "d")
	beyond := routed("d") + `
  routes: [{dstNetwork: "fd11::9/128", nextHopAddr: "fd00:4::2", outgoingInterface: d}]`
	frame := udp("10.0.0.1:1", "10.0.0.2:2").between(hostMAC("a"), everybody()).tagged(100)
	for range 2 {
		l.declare(bare("a", "b")+vlan, beyond, steeredFrames("vlan"))
		l.run(step{in: "a", packet: frame, out: []string{"d: fd00:3::1 > fd11::9 | ethernet | 10.0.0.1 > 10.0.0.2 | udp 1 > 2"}})
		l.declare(bare("a", "b")+vlan, beyond, `vppConfig: {bridgeDomains: [{name: bd, flood: true, unknownUnicastFlood: true, forward: true, learn: true, interfaces: [{name: vlan}, {name: b}]}]}`)
		l.run(step{in: "a", packet: frame, out: []string{"b: 10.0.0.1 > 10.0.0.2 | udp 1 > 2"}})
	}
}

// An interface whose frames are steered also sends the frames that a local SID delivers. It goes on to send them when the
// steering has ended.
func TestFramesAreDeliveredAfterSteering(t *testing.T) {
	l := start(t, "a", "b")
	base := routed("a", "b") + `
  routes: [{dstNetwork: "fd11::9/128", nextHopAddr: "fd00:1::2", outgoingInterface: a}]
  srv6Localsids: [{sid: "fd11::5", endFunctionDx2: {outgoingInterface: b}}]`
	const text = "10.9.1.1 > 10.9.2.1 | udp 1000 > 2000"
	frame := udp("10.9.1.1:1000", "10.9.2.1:2000").between(hostMAC("a"), hostMAC("b")).frame()
	delivered := step{in: "a", packet: frame.within("fd00:1::2", "fd11::5", ethernetWithin), out: []string{"b: " + text}}
	l.declare(base)
	l.run(delivered)
	l.declare(base, steeredFrames("b"))
	l.run(delivered, step{in: "b", packet: udp("10.9.2.1:2000", "10.9.1.1:1000"), out: []string{"a: fd00:3::1 > fd11::9 | ethernet | 10.9.2.1 > 10.9.1.1 | udp 2000 > 1000"}})
	l.declare(base)
	l.run(delivered)
}
