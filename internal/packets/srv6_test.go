package packets

import (
	"fmt"
	"testing"
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
