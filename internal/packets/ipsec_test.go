package packets

import (
	"fmt"
	"testing"
)

// A tunnel has the protection of two associations, one for each direction. The wire shows ESP
// only, and the packets come out as they went in.
func TestIPsecEncryptsAndDecrypts(t *testing.T) {
	const (
		cbc   = "cryptoAlg: AES_CBC_256, cryptoKey: 4a506a794f574265564551694d6537684a506a794f574265564551694d653768, integAlg: SHA_256_128, integKey: 4339314b55523947594d6d3547666b45764e6a584339314b55523947594d6d35"
		gcm   = "cryptoAlg: AES_GCM_128, cryptoKey: 4a506a794f574265564551694d653768, cryptoSalt: 305419896"
		other = `cryptoAlg: AES_GCM_128, cryptoKey: "00000000000000000000000000000000", cryptoSalt: 305419896`
	)
	p := startPair(t)
	forth, reply := both()
	forth.out, reply.out = []string{there}, []string{back}
	for _, algorithm := range []string{cbc, gcm} {
		p.declare(protected(1, algorithm), protected(2, algorithm))
		p.hidden(forth, "10.0.23.1 > 10.0.23.2 | ipsecesp")
		p.hidden(reply, "10.0.23.2 > 10.0.23.1 | ipsecesp")
	}

	p.declare(protected(1, gcm), protected(2, other))
	p.run(step{in: "a", packet: forth.packet, not: []string{"b"}}, step{in: "b", packet: reply.packet, not: []string{"a"}})

	// VPP 25.10 lets a tunnel whose protection is removed drop all packets, until it is made anew.
	p.declare("", "")
	p.run(step{in: "a", packet: forth.packet, not: []string{"b", "w"}}, step{in: "b", packet: reply.packet, not: []string{"a", "w"}})
	p.declare(unprotected(1), unprotected(2))
	p.run(
		step{in: "a", packet: forth.packet, out: []string{there, "w: 10.0.23.1 > 10.0.23.2 | 10.9.1.1 > 10.9.2.1 | udp 1000 > 2000"}},
		step{in: "b", packet: reply.packet, out: []string{back, "w: 10.0.23.2 > 10.0.23.1 | 10.9.2.1 > 10.9.1.1 | udp 2000 > 1000"}},
	)
}

// unprotected declares the tunnel of the first or the second VPP.
func unprotected(end int) string {
	return fmt.Sprintf(`vppConfig:
  interfaces: [{name: tunnel, type: IPIP_TUNNEL, enabled: true, ipAddresses: [172.16.0.%[1]d/30], ipip: {srcAddr: 10.0.23.%[1]d, dstAddr: 10.0.23.%[2]d}}]
  routes: [{dstNetwork: 10.9.%[2]d.0/24, nextHopAddr: 172.16.0.%[2]d, outgoingInterface: tunnel}]
`, end, 3-end)
}

// protected declares the tunnel with its protection. Association 1 is that of the packets from the first VPP.
func protected(end int, algorithm string) string {
	return unprotected(end) + fmt.Sprintf(`
  ipsecSas:
    - {index: 1, spi: 1001, protocol: ESP, useAntiReplay: true, %[3]s}
    - {index: 2, spi: 1002, protocol: ESP, useAntiReplay: true, %[3]s}
  ipsecTunnelProtections: [{interface: tunnel, saOut: [%[1]d], saIn: [%[2]d]}]
`, end, 3-end, algorithm)
}

// Policies on the interfaces at the wire protect what the networks behind the two VPPs send to each
// other, and let all else pass.
func TestIPsecPoliciesProtect(t *testing.T) {
	p := startPair(t)
	forth, reply := both()
	forth.out, reply.out = []string{there}, []string{back}
	p.declare(policies(1), policies(2))
	p.hidden(forth, "10.0.23.1 > 10.0.23.2 | ipsecesp")
	p.hidden(reply, "10.0.23.2 > 10.0.23.1 | ipsecesp")
	p.crosses("a", "b")

	p.declare(direct(1), direct(2))
	p.run(
		step{in: "a", packet: forth.packet, out: []string{there, "w: 10.9.1.1 > 10.9.2.1 | udp 1000 > 2000"}},
		step{in: "b", packet: reply.packet, out: []string{back, "w: 10.9.2.1 > 10.9.1.1 | udp 2000 > 1000"}},
	)
}

// direct declares the route of the first or the second VPP to the network behind the other one.
func direct(end int) string {
	return fmt.Sprintf(`vppConfig:
  routes: [{dstNetwork: 10.9.%[1]d.0/24, nextHopAddr: 10.0.23.%[1]d, outgoingInterface: w}]
`, 3-end)
}

// policies declares that route, and the policies.
func policies(end int) string {
	const algorithm = "protocol: ESP, cryptoAlg: AES_GCM_128, cryptoKey: 4a506a794f574265564551694d653768, cryptoSalt: 305419896"
	return direct(end) + fmt.Sprintf(`
  ipsecSas:
    - {index: 1, spi: 1001, tunnelSrcAddr: 10.0.23.1, tunnelDstAddr: 10.0.23.2, %[3]s}
    - {index: 2, spi: 1002, tunnelSrcAddr: 10.0.23.2, tunnelDstAddr: 10.0.23.1, %[3]s}
  ipsecSpds: [{index: 1, interfaces: [{name: w}]}]
  ipsecSps:
    - {spdIndex: 1, saIndex: %[1]d, isOutbound: true, priority: 10, action: PROTECT,
       localAddrStart: 10.9.%[1]d.0, localAddrStop: 10.9.%[1]d.255, remoteAddrStart: 10.9.%[2]d.0, remoteAddrStop: 10.9.%[2]d.255}
    - {spdIndex: 1, saIndex: %[2]d, priority: 10, action: PROTECT,
       localAddrStart: 10.9.%[1]d.0, localAddrStop: 10.9.%[1]d.255, remoteAddrStart: 10.9.%[2]d.0, remoteAddrStop: 10.9.%[2]d.255}
    - {spdIndex: 1, isOutbound: true, priority: 5, action: BYPASS}
    - {spdIndex: 1, priority: 5, action: BYPASS}
`, end, 3-end, algorithm)
}
