package packets

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

// A pair is two VPPs, each with an agent, and a wire between them.
//
//	10.9.1.0/24 — port a — first VPP — wire w — second VPP — port b — 10.9.2.0/24
//
// The wire is a port whose other end, which otherwise is the test's, the second VPP has. The test
// sees all packets of both directions there. A test declares how the two networks reach each other.
//
//	first VPP at w    10.0.23.1, fd00:23::1, 02:fe:00:00:00:17
//	second VPP at w   10.0.23.2, fd00:23::2, 02:00:00:00:00:17
type pair struct {
	*lab
	second *lab // it has the ports of the first
}

func startPair(t *testing.T) *pair {
	t.Helper()
	first := start(t, "a", "b", "w")
	p := &pair{lab: first, second: &lab{T: t, ports: first.ports, sched: startAgent(t, testkit.StartVPPHere(t, program(t)).Socket)}}
	p.passes = p.crosses
	return p
}

// declare gives both VPPs their ports, a plain route to each other's port, and one document each.
func (p *pair) declare(first, second string) {
	p.Helper()
	const routes = `vppConfig: {routes: [
		{dstNetwork: 10.0.%[1]d.0/24, nextHopAddr: 10.0.23.%[1]d, outgoingInterface: w},
		{dstNetwork: 10.9.%[2]d.0/24, nextHopAddr: 10.0.%[2]d.2, outgoingInterface: %[3]s}]}`
	p.lab.declare(routed("a", "w"), fmt.Sprintf(routes, 2, 1, "a"), first)
	p.second.declare(routed("b"), otherEnd("w"), fmt.Sprintf(routes, 1, 2, "b"), second)
}

// otherEnd declares the interface of the second VPP at a wire.
func otherEnd(wire string) string {
	return fmt.Sprintf(`vppConfig:
  interfaces:
    - {name: %[1]s, type: AF_PACKET, enabled: true, physAddress: %[2]q, ipAddresses: [10.0.%[3]d.2/24, 'fd00:%[3]d::2/64'], afpacket: {hostIfName: %[1]s}}
  arps:
    - {interface: %[1]s, ipAddress: 10.0.%[3]d.1, physAddress: %[4]q, static: true}
    - {interface: %[1]s, ipAddress: 'fd00:%[3]d::1', physAddress: %[4]q, static: true}
`, wire, hostMAC(wire).String(), number(wire), vppMAC(wire).String())
}

// crosses is the fence of a pair: packets go from port to port on the plain routes. Each VPP may
// let a packet overtake those that it took together with it, so two of them have to cross. The
// second one also shows that the test has seen all that was on the wire before.
func (p *pair) crosses(in, _ string) {
	p.Helper()
	from, to, out := 1, 2, "b"
	if in == "b" {
		from, to, out = 2, 1, "a"
	}
	for range 2 {
		mark := p.send(in, udp(fmt.Sprintf("10.0.%d.2:7", from), fmt.Sprintf("10.0.%d.2:7", to)))
		text := fmt.Sprintf("10.0.%d.2 > 10.0.%d.2 | udp 7 > 7 | %s", from, to, mark)
		p.expect("w", text)
		p.expect(out, text)
	}
}

// There and back are packets between the networks behind the two VPPs, as they arrive.
const (
	there = "b: 10.9.1.1 > 10.9.2.1 | udp 1000 > 2000"
	back  = "a: 10.9.2.1 > 10.9.1.1 | udp 2000 > 1000"
)

// both returns a step for each direction, without its results.
func both() (forth, back step) {
	return step{in: "a", packet: udp("10.9.1.1:1000", "10.9.2.1:2000")}, step{in: "b", packet: udp("10.9.2.1:2000", "10.9.1.1:1000")}
}

// hidden sends a packet that must come out, while the wire has nothing but this header and what
// is encrypted.
func (p *pair) hidden(s step, header string) {
	p.Helper()
	mark := p.send(s.in, s.packet)
	port, text, _ := strings.Cut(s.out[0], ": ")
	p.expect(port, text+" | "+mark)
	p.crosses(s.in, port)
	if at := slices.IndexFunc(p.ports["w"].seen, func(got string) bool { return strings.HasSuffix(got, mark) }); at >= 0 {
		p.Fatalf("the wire has %v in clear text: %s", s.packet, p.ports["w"].seen[at])
	}
	p.await("w", header, func(got string) bool { return strings.HasPrefix(got, header) })
}
