package packets

import (
	"fmt"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// The first VPP steers packets into a policy, and the second one delivers them by a function of its
// local SIDs.
func TestSRv6SteersAndDelivers(t *testing.T) {
	const sent = "10.9.1.1 > 10.9.2.1 | udp 1000 > 2000"
	p := startPair(t)
	forth, _ := both()
	for _, c := range []struct{ name, segments, sids, wire string }{
		{"End.DT4", `"fd11::4"`, `{sid: "fd11::4", endFunctionDt4: {}}`, "fd00:23::1 > fd11::4 | " + sent},
		{"End.DX4", `"fd11::5"`, `{sid: "fd11::5", endFunctionDx4: {outgoingInterface: b, nextHop: 10.0.2.2}}`, "fd00:23::1 > fd11::5 | " + sent},
		{"End", `"fd11::6", "fd11::4"`, `{sid: "fd11::6", baseEndFunction: {psp: true}}, {sid: "fd11::4", endFunctionDt4: {}}`, "fd00:23::1 > fd11::6 | ipv6routing | " + sent},
	} {
		p.Log(c.name)
		p.declare(steered(c.segments), "vppConfig: {srv6Localsids: ["+c.sids+"]}")
		p.run(step{in: "a", packet: forth.packet, out: []string{there, "w: " + c.wire}})
	}
	p.declare(steered(`"fd11::4"`), "")
	p.run(step{in: "a", packet: forth.packet, out: []string{"w: fd00:23::1 > fd11::4 | " + sent}, not: []string{"b"}})
	p.declare("", "")
	p.run(step{in: "a", packet: forth.packet, not: []string{"b", "w"}})
}

// steered declares a policy with one list of segments, and steers packets to the network behind the
// second VPP into it.
func steered(segments string) string {
	return fmt.Sprintf(`vppConfig:
  routes: [{dstNetwork: "fd11::/16", nextHopAddr: "fd00:23::2", outgoingInterface: w}]
  srv6Global: {encapSourceAddress: "fd00:23::1"}
  srv6Policies: [{bsid: "fd12::1", srhEncapsulation: true, segmentLists: [{weight: 1, segments: [%s]}]}]
  srv6Steerings: [{name: branch, policyBsid: "fd12::1", l3Traffic: {prefixAddress: 10.9.2.0/24}}]
`, segments)
}

// One VPP has a local SID of each function that delivers or forwards. Packets with the headers of
// another node arrive at a.
func TestSRv6EndFunctions(t *testing.T) {
	const from, wire, text = "fd00:1::2", "fd00:1::2 > fd13::1", "10.9.1.1 > 10.9.2.1 | udp 1000 > 2000"
	l := start(t, "a", "b", "c")
	l.declare(routed("a", "b", "c"), `
vppConfig:
  vrfs: [{id: 7, protocol: IPV6}]
  routes:
    - {dstNetwork: "fd09::/16", nextHopAddr: "fd00:2::2", outgoingInterface: b}
    - {dstNetwork: "fd13::/16", nextHopAddr: "fd00:3::2", outgoingInterface: c}
    - {vrfId: 7, dstNetwork: "fd13::/16", nextHopAddr: "fd00:2::2", outgoingInterface: b}
  srv6Localsids:
    - {sid: "fd11::1", baseEndFunction: {}}
    - {sid: "fd11::2", endFunctionX: {outgoingInterface: b, nextHop: "fd00:2::2"}}
    - {sid: "fd11::3", endFunctionX: {outgoingInterface: b, nextHop: "fd00:2::2", psp: true}}
    - {sid: "fd11::4", endFunctionT: {vrfId: 7}}
    - {sid: "fd11::5", endFunctionDx2: {outgoingInterface: b}}
    - {sid: "fd11::6", endFunctionDx6: {outgoingInterface: b, nextHop: "fd00:2::2"}}
    - {sid: "fd11::7", endFunctionDt6: {}}`)
	four, six := udp("10.9.1.1:1000", "10.9.2.1:2000"), udp("[fd09::1]:1000", "[fd09::2]:2000")
	const ethernet = layers.IPProtocol(143) // RFC 8986
	frame := four.between(hostMAC("a"), hostMAC("b")).frame()
	for name, s := range map[string]step{
		"End":                {packet: four.steeredTo(from, "fd11::1", "fd13::1"), out: []string{"c: " + wire + " | ipv6routing | " + text}, not: []string{"b"}},
		"End.X":              {packet: four.steeredTo(from, "fd11::2", "fd13::1"), out: []string{"b: " + wire + " | ipv6routing | " + text}, not: []string{"c"}},
		"End.X with PSP":     {packet: four.steeredTo(from, "fd11::3", "fd13::1"), out: []string{"b: " + wire + " | " + text}, not: []string{"c"}},
		"End.T":              {packet: four.steeredTo(from, "fd11::4", "fd13::1"), out: []string{"b: " + wire + " | ipv6routing | " + text}, not: []string{"c"}},
		"End.DX2":            {packet: frame.within(from, "fd11::5", ethernet), out: []string{"b: " + text}},
		"End.DX6":            {packet: six.within(from, "fd11::6", layers.IPProtocolIPv6), out: []string{"b: fd09::1 > fd09::2 | udp 1000 > 2000"}},
		"End.DT6":            {packet: six.within(from, "fd11::7", layers.IPProtocolIPv6), out: []string{"b: fd09::1 > fd09::2 | udp 1000 > 2000"}},
		"a SID of nobody":    {packet: six.within(from, "fd11::8", layers.IPProtocolIPv6), not: []string{"b", "c"}},
		"no segments behind": {packet: four.within(from, "fd11::2", layers.IPProtocolIPv4), not: []string{"b", "c"}},
	} {
		t.Log(name)
		s.in = "a"
		l.run(s)
	}
}

// End.AD passes packets through a service that knows no segments, and puts them back into their
// headers.
func TestSRv6ProxiesAService(t *testing.T) {
	const text = "10.9.1.1 > 10.9.2.1 | udp 1000 > 2000"
	l := start(t, "a", "b", "c")
	l.declare(routed("a", "b", "c"), `
vppConfig:
  routes: [{dstNetwork: "fd13::/16", nextHopAddr: "fd00:3::2", outgoingInterface: c}]
  srv6Localsids: [{sid: "fd11::9", endFunctionAd: {outgoingInterface: b, incomingInterface: b, l3ServiceAddress: 10.0.2.2}}]`)
	plain := udp("10.9.1.1:1000", "10.9.2.1:2000")
	l.run(
		step{in: "a", packet: plain.steeredTo("fd00:1::2", "fd11::9", "fd13::1"), out: []string{"b: " + text}, not: []string{"c"}},
		step{in: "b", packet: plain, out: []string{"c: fd00:1::2 > fd13::1 | ipv6routing | " + text}},
	)
}
