package packets

import (
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"
)

// The two VPPs shake hands, and packets come out as they went in. The wire shows only datagrams of
// WireGuard.
func TestWireguardConnectsTwoVPPs(t *testing.T) {
	p := startPair(t)
	forth, reply := both()
	forth.out, reply.out = []string{there}, []string{back}

	p.declare(wireguard(t, 1, "172.16.0.2/32, 10.9.2.0/24"), wireguard(t, 2, "172.16.0.1/32, 10.9.1.0/24"))
	p.lab.becomes("vpp/wg/peer/wg/endpoint/10.0.23.2/51820/state/ESTABLISHED")
	p.second.becomes("vpp/wg/peer/wg/endpoint/10.0.23.1/51820/state/ESTABLISHED")
	p.hidden(forth, "10.0.23.1 > 10.0.23.2 | udp 51820 > 51820 | encrypted")
	p.hidden(reply, "10.0.23.2 > 10.0.23.1 | udp 51820 > 51820 | encrypted")

	// The peer of the first VPP has another network now. VPP checks this of packets that arrive; it
	// chooses the peer of those that leave by their next hop.
	p.declare(wireguard(t, 1, "172.16.0.2/32, 10.10.0.0/16"), wireguard(t, 2, "172.16.0.1/32, 10.9.1.0/24"))
	p.lab.becomes("vpp/wg/peer/wg/endpoint/10.0.23.2/51820/state/ESTABLISHED")
	p.hidden(forth, "10.0.23.1 > 10.0.23.2 | udp 51820 > 51820 | encrypted")
	p.run(step{in: "b", packet: reply.packet, not: []string{"a"}})

	p.declare("", "")
	p.run(step{in: "a", packet: forth.packet, not: []string{"b", "w"}}, step{in: "b", packet: reply.packet, not: []string{"a", "w"}})
}

// wireguard declares the interface and the peer of the first or the second VPP.
func wireguard(t *testing.T, end int, allowed string) string {
	t.Helper()
	own, other := privateKey(t, end), privateKey(t, 3-end)
	return fmt.Sprintf(`vppConfig:
  interfaces: [{name: wg, type: WIREGUARD_TUNNEL, enabled: true, ipAddresses: [172.16.0.%[1]d/24], wireguard: {privateKey: %[3]q, port: 51820, srcAddr: 10.0.23.%[1]d}}]
  Peer_list: [{wgIfName: wg, endpoint: 10.0.23.%[2]d, port: 51820, publicKey: %[4]q, allowedIps: [%[5]s]}]
  routes: [{dstNetwork: 10.9.%[2]d.0/24, nextHopAddr: 172.16.0.%[2]d, outgoingInterface: wg}]
`, end, 3-end, base64.StdEncoding.EncodeToString(own.Bytes()), base64.StdEncoding.EncodeToString(other.PublicKey().Bytes()), allowed)
}

// privateKey is the same for each test.
func privateKey(t *testing.T, end int) *ecdh.PrivateKey {
	t.Helper()
	seed := sha256.Sum256(fmt.Appendf(nil, "the key of VPP %d", end))
	key, err := ecdh.X25519().NewPrivateKey(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return key
}
