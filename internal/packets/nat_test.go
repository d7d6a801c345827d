package packets

import (
	"fmt"
	"strings"
	"testing"
)

// Both of VPP's plugins for NAT44 translate sessions from inside. They differ in the packets from
// outside that belong to a session: those of one address and port, or those of any host.
func TestNAT44TranslatesInBothDirections(t *testing.T) {
	for name, global := range map[string]string{"endpoint-dependent": "{}", "endpoint-independent": "{endpointIndependent: true}"} {
		t.Run(name, func(t *testing.T) {
			l := start(t, "a", "b")
			l.declare(routed("a", "b"), toB, `
vppConfig:
  nat44Global: `+global+`
  nat44Interfaces: [{name: a, natInside: true}, {name: b, natOutside: true}]
  nat44Pools: [{name: pool, firstIp: 10.0.2.100, lastIp: 10.0.2.100}]`)
			mark := l.send("a", udp("10.0.1.2:1000", "10.9.0.1:2000"))
			out := l.await("b", "the translated packet", func(got string) bool {
				return strings.HasPrefix(got, "10.0.2.100 > 10.9.0.1 | udp ") && strings.HasSuffix(got, "> 2000 | "+mark)
			})
			var port int
			if _, err := fmt.Sscanf(out, "10.0.2.100 > 10.9.0.1 | udp %d", &port); err != nil {
				t.Fatal(err)
			}
			stranger := step{in: "b", packet: udp("10.9.0.2:3000", fmt.Sprintf("10.0.2.100:%d", port)), not: []string{"a"}}
			if name == "endpoint-independent" {
				stranger.out, stranger.not = []string{"a: 10.9.0.2 > 10.0.1.2 | udp 3000 > 1000"}, nil
			}
			l.run(
				step{in: "b", packet: udp("10.9.0.1:2000", fmt.Sprintf("10.0.2.100:%d", port)), out: []string{"a: 10.9.0.1 > 10.0.1.2 | udp 2000 > 1000"}},
				stranger,
				// Nothing inside has asked for this one.
				step{in: "b", packet: udp("10.9.0.1:2000", fmt.Sprintf("10.0.2.100:%d", port^1)), not: []string{"a"}},
			)
		})
	}
}

func TestDNATBalancesByWeight(t *testing.T) {
	l := start(t, "a", "b", "c")
	l.declare(routed("a", "b", "c"), `
vppConfig:
  nat44Global: {}
  nat44Interfaces: [{name: a, natOutside: true}, {name: b, natInside: true}, {name: c, natInside: true}]
  nat44Pools: [{name: pool, firstIp: 10.8.0.1, lastIp: 10.8.0.1}]
  dnat44s:
    - label: web
      stMappings:
        - {externalIp: 10.8.0.1, externalPort: 80, protocol: UDP, localIps: [{localIp: 10.0.2.2, localPort: 8080, probability: 1}, {localIp: 10.0.3.2, localPort: 8080, probability: 3}]}`)

	// VPP draws by chance. 1 in 4 of 400 is 100, with a standard deviation of 9.
	light, heavy := l.flow("a", 400, "10.0.1.2", "10.8.0.1:80", "b", "c")
	if light < 40 || light > 160 {
		t.Errorf("%d of 400 sessions went to the server of weight 1, and %d to that of weight 3; expected about 100 and 300", light, heavy)
	}
	l.run(step{in: "b", packet: udp("10.0.2.2:8080", "10.0.1.2:9999"), not: []string{"c"}})
}

// The endpoint-independent plugin has mappings of one local side. They wait for a pool with their
// address, and translate in both directions, also what begins inside.
func TestEndpointIndependentDNATTranslates(t *testing.T) {
	l := start(t, "a", "b")
	const mapping = `
vppConfig:
  dnat44s: [{label: web, stMappings: [{externalIp: 10.8.0.1, externalPort: 80, protocol: UDP, localIps: [{localIp: 10.0.2.2, localPort: 8080}]}]}]`
	network := routed("a", "b") + `
  nat44Global: {endpointIndependent: true}
  nat44Interfaces: [{name: a, natOutside: true}, {name: b, natInside: true}]`
	const pool = `
vppConfig: {nat44Pools: [{name: pool, firstIp: 10.8.0.1, lastIp: 10.8.0.9}]}`
	l.declare(network, pool, mapping)
	translated := []step{
		{in: "a", packet: udp("10.0.1.2:1000", "10.8.0.1:80"), out: []string{"b: 10.0.1.2 > 10.0.2.2 | udp 1000 > 8080"}},
		{in: "b", packet: udp("10.0.2.2:8080", "10.0.1.2:1000"), out: []string{"a: 10.8.0.1 > 10.0.1.2 | udp 80 > 1000"}},
	}
	l.run(translated...)
	l.run(step{in: "b", packet: udp("10.0.2.2:8080", "10.0.1.2:7"), out: []string{"a: 10.8.0.1 > 10.0.1.2 | udp 80 > 7"}})

	// VPP refuses to remove the address of a mapping, and a mapping without one.
	l.declare(network, mapping+`
  nat44Pools: [{name: pool, firstIp: 10.8.0.1}]`)
	l.run(translated...)
	l.declare(network, pool)
	l.run(step{in: "a", packet: udp("10.0.1.2:1000", "10.8.0.1:80"), not: []string{"b"}})
}

// A VRF table of NAT44 says in which VRFs the destinations of one VRF are. Another one has the route.
func TestNAT44LooksIntoTheVRFsOfItsTable(t *testing.T) {
	l := start(t, "a", "b")
	network := strings.NewReplacer("{name: a,", "{name: a, vrf: 10,", "{name: b,", "{name: b, vrf: 20,").Replace(routed("a", "b")) + `
  vrfs: [{id: 10}, {id: 20}, {id: 30}, {id: 10, protocol: IPV6}, {id: 20, protocol: IPV6}]
  routes: [{vrfId: 20, dstNetwork: 10.9.0.0/16, nextHopAddr: 10.0.2.2, outgoingInterface: b}]
  nat44Global: {}
  nat44Interfaces: [{name: a, natInside: true}, {name: b, natOutside: true}]
  nat44Pools: [{name: pool, firstIp: 10.0.2.100, lastIp: 10.0.2.100, vrfId: 4294967295}]`
	for port, table := range []string{
		`{nat44VrfTables: [{srcVrfId: 10, destVrfIds: [20]}]}`,
		`{nat44VrfTables: [{srcVrfId: 10}], nat44VrfRoutes: [{srcVrfId: 10, destVrfId: 20}]}`,
	} {
		l.declare(network, "vppConfig: "+table)
		mark := l.send("a", udp(fmt.Sprintf("10.0.1.2:%d", port+1), "10.9.0.1:2000"))
		l.await("b", "a translated packet", func(got string) bool {
			return strings.HasPrefix(got, "10.0.2.100 > 10.9.0.1 | udp ") && strings.HasSuffix(got, "> 2000 | "+mark)
		})
	}
	l.declare(network, `vppConfig: {nat44VrfTables: [{srcVrfId: 10, destVrfIds: [30]}]}`)
	l.run(step{in: "a", packet: udp("10.0.1.2:1001", "10.9.0.1:2000"), not: []string{"b"}})
}
