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

// TestModesKeepFeatures has interfaces with lists, mirrors and the rewriting of VLAN tags go from each mode into each
// other one: layer 3, a bridge domain, a cross-connect, and the steering of frames. All that a mode can have works there.
func TestModesKeepFeatures(t *testing.T) {
	const (
		text    = "10.0.1.2 > 10.9.0.1 | udp 1000 > "
		bridged = `vppConfig: {bridgeDomains: [{name: bd, flood: true, unknownUnicastFlood: true, forward: true, learn: true, interfaces: [{name: a}, {name: b}, {name: vlan}]}]}`
		crossed = `vppConfig: {xconnectPairs: [{receiveInterface: a, transmitInterface: b}, {receiveInterface: b, transmitInterface: a}]}`
	)
	l := start(t, "a", "b", "c")
	frames := func(string, string) { l.floods("a", "b") }
	inLayer2, inLayer3 := bare("a", "b", "c")+kept, strings.Replace(routed("a", "b", "c"), "  arps:", strings.TrimSuffix(strings.TrimPrefix(kept, "\n"), "\n")+"\n  arps:", 1)
	modes := []struct {
		name      string
		documents []string
		passes    func(in, out string)
		layer2    bool
		vlan      bool // the frames of the sub-interface pass
	}{
		{"layer 3", []string{inLayer3, toB}, nil, false, false},
		{"a bridge domain", []string{inLayer2, bridged}, frames, true, true},
		{"a cross-connect", []string{inLayer2, crossed}, frames, true, false},
		{"steering of a", []string{inLayer2, steeredFrames("a")}, nil, true, false},
		{"steering of b", []string{inLayer2, steeredFrames("b")}, nil, true, false},
	}
	for _, first := range modes {
		for _, then := range modes[:3] {
			t.Log(then.name + " after " + first.name)
			l.declare(first.documents...)
			l.declare(then.documents...)
			l.passes = then.passes
			to := func(from, port string) packet {
				p := udp(from+":1000", "10.9.0.1:"+port)
				if then.layer2 {
					p = p.between(hostMAC("a"), everybody())
				}
				return p
			}
			l.run(
				step{in: "a", packet: to("10.0.1.2", "80"), out: []string{"b: " + text + "80", "c: " + text + "80"}},
				step{in: "a", packet: to("10.0.1.2", "82"), not: []string{"b"}},
				step{in: "a", packet: to("10.0.1.2", "83"), not: []string{"b"}},
				step{in: "a", packet: to("10.0.1.3", "80"), not: []string{"b"}},
			)
			if then.vlan {
				l.run(step{in: "a", packet: to("10.0.1.2", "80").tagged(100), out: []string{"b: " + text + "80"}})
			}
		}
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
