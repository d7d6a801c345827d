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
